//! Facts about a named model: its window, its counter, its profile.

use epitome::models::{Model, ModelCounter, Models};

use crate::args::{BudgetArgs, ModelArgs};
use crate::failure::{Failure, Result};
use crate::scan::{self, Counter};

/// The named model, if any.
pub(crate) fn find(args: &ModelArgs) -> Result<Option<Model>> {
    let own = match &args.models {
        Some(path) => {
            let rows = std::fs::read_to_string(path).map_err(|error| Failure::io(path, &error))?;
            let models = Models::builtin().with_rows(&rows);
            Some(models.map_err(|error| Failure::input(format!("{}: {error}", path.display())))?)
        }
        None => None,
    };
    let models = own.as_ref().unwrap_or_else(|| Models::builtin());
    let Some(name) = &args.model else { return Ok(None) };
    let model = models.find(name).map_err(|error| {
        Failure::input(format!("--model: {error} (--window and --tokenizer, or --models FILE)"))
    })?;
    Ok(Some(model.clone()))
}

/// The named counter; else that of the model; else `default`. With a model, the rules of its provider apply to the
/// framing of messages and to media.
pub(crate) fn counter(model: Option<&Model>, tokenizer: Option<&str>, default: &str) -> Result<Counter> {
    let name = tokenizer.or(model.map(|model| model.encoding.as_str())).unwrap_or(default);
    let inner = scan::counter(name)?;
    Ok(match model {
        Some(model) => Box::new(ModelCounter::over(inner, model)) as Counter,
        None => inner,
    })
}

/// The budget options, in the model's window unless another was given.
pub(crate) fn budget(model: Option<&Model>, args: &BudgetArgs) -> BudgetArgs {
    match model {
        Some(model) if args.window.is_none() => BudgetArgs {
            window: Some(model.budget_window()),
            reserve: args.reserve.or(Some(model.reserve())),
            ..*args
        },
        _ => *args,
    }
}
