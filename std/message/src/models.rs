//! Models by name: window, counter, framing and image rules, as a table with a source and a date for each row.
//!
//! ```
//! use epitome_message::models::Models;
//!
//! let model = Models::builtin().find("openai/gpt-4o-2024-08-06")?;
//! assert_eq!((model.name.as_str(), model.window, model.encoding.as_str()), ("gpt-4o", 128_000, "o200k_base"));
//! assert_eq!(model.budget()?.trigger(), 100_000);
//!
//! let error = Models::builtin().find("gpt-4p").unwrap_err();
//! assert_eq!(error.nearest.first().map(String::as_str), Some("gpt-4o"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The table does not list all models, and nothing is guessed: a missing name is an [`UnknownModel`]. Add rows with
//! [`Models::with_rows`] or [`Models::with`]; they take precedence over built-in rows with the same name.
//!
//! # Names
//! Case does not matter. A name is looked up unchanged; then without the vendor (all up to the last `/`; a region
//! and a vendor in Bedrock's form, `us.anthropic.`), and without the text from a `:` or `@` on; then repeatedly
//! without one ending: a version (`-v1`), a date (`-2024-08-06`, `-20241022`, `-05-06`), `-latest`, `-preview`,
//! `-0`. Nothing else is removed: `gpt-4o-audio` is not `gpt-4o`.

mod counter;
mod name;
mod prices;
mod row;
mod tools;

use core::error::Error;
use core::fmt;
use std::sync::LazyLock;

use epitome_core::{Budget, BudgetError, Framing, ImageRule, MediaRules, Profile, RESERVE_MAX, ToolFraming};

pub use counter::ModelCounter;
pub use prices::{Cache, Prices};
pub use row::RowError;
pub use tools::{ToolsError, measure_functions, measure_tools};

use crate::tokens::UnknownCounter;

/// A table of models.
///
/// ```
/// use epitome_message::models::{Model, Models};
///
/// // A model that the table does not have.
/// let models = Models::builtin().clone().with(Model::new("my-model", 65_536));
/// let model = models.find("my-model")?;
/// assert_eq!((model.reserve(), model.budget()?.limit()), (8_192, 57_344));
/// // The same as a line of a table.
/// let models = Models::builtin().with_rows("my-model,openai-chat,estimate,65536,,,,,,")?;
/// assert_eq!(models.find("MY-MODEL")?.window, 65_536);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    /// The rows of the table: the first row with a name counts.
    rows: Vec<Model>,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// Its name, in lower case.
    pub name: String,
    /// The profile with its rules and framing.
    pub profile: Profile,
    /// The name of its token counter in [`counter_by_name`](crate::tokens::counter_by_name).
    pub encoding: String,
    /// The window: maximum tokens of a request and its answer together.
    pub window: u64,
    /// Maximum tokens of a request, if this is less than the window.
    pub input_max: Option<u64>,
    /// Maximum tokens of an answer.
    pub output_max: Option<u64>,
    /// The rule for the tokens of an image. `None` if the model takes no images or no rule is published; the rule
    /// of the profile then applies.
    pub image: Option<ImageRule>,
    /// The prices of its tokens; `None` if they are not published, or it has no prompt cache.
    pub prices: Option<Prices>,
    /// The source of the figures.
    pub source: String,
    /// The date of the figures, as `YYYY-MM-DD`.
    pub date: String,
}

impl Models {
    /// The built-in table.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Models> =
            // An unreadable row would be missing. A test reads all rows.
            LazyLock::new(|| Models { rows: row::parse(TABLE).unwrap_or_default() });
        &BUILTIN
    }

    /// This table with the rows of `csv` before its own. The form is that of `std/message/src/models/table.csv`:
    /// lines of `name,profile,encoding,window,input,output,image,prices,source,date`, where `input`, `output`,
    /// `prices`, `source` and `date` may be empty. Empty lines, lines that begin with `#`, and a line that begins
    /// with `name,` are skipped.
    ///
    /// # Errors
    /// [`RowError`], with the line and the reason.
    pub fn with_rows(&self, csv: &str) -> Result<Self, RowError> {
        let mut rows = row::parse(csv)?;
        rows.extend(self.rows.iter().cloned());
        Ok(Self { rows })
    }

    /// This table with `model` before its own rows.
    #[must_use]
    pub fn with(mut self, model: Model) -> Self {
        self.rows.insert(0, model);
        self
    }

    /// The model with this name: see [names](self#names).
    ///
    /// # Errors
    /// [`UnknownModel`], with the nearest known names.
    pub fn find(&self, name: &str) -> Result<&Model, UnknownModel> {
        let forms = name::forms(name);
        let found = forms.iter().find_map(|form| self.rows.iter().find(|model| model.name == *form));
        found.ok_or_else(|| UnknownModel {
            name: name.to_owned(),
            nearest: name::nearest(&forms, self.rows.iter().map(|model| model.name.as_str())),
        })
    }

    /// All models, in the order of the look-up.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.rows.iter()
    }
}

impl Model {
    /// A model with this window, the estimator as its counter, and the profile [`Profile::OpenaiChat`].
    #[must_use]
    pub fn new(name: &str, window: u64) -> Self {
        Self {
            name: name.to_ascii_lowercase(),
            profile: Profile::OpenaiChat,
            encoding: "estimate".to_owned(),
            window,
            input_max: None,
            output_max: None,
            image: None,
            prices: None,
            source: String::new(),
            date: String::new(),
        }
    }

    /// The budget of its requests, with the defaults of [`Budget`]. The reserve does not exceed the model's longest
    /// answer, and the limit does not exceed its longest request.
    ///
    /// # Errors
    /// [`BudgetError`] for a window that is too small for any budget.
    pub fn budget(&self) -> Result<Budget, BudgetError> {
        Budget::builder().window(self.budget_window()).reserve(self.reserve()).build()
    }

    /// The window for a budget, in tokens: the model's window, or the longest request plus the reserve, if that is
    /// less.
    #[must_use]
    pub fn budget_window(&self) -> u64 {
        let by_input = self.input_max.map(|input| input.saturating_add(self.reserve()));
        by_input.map_or(self.window, |most| most.min(self.window))
    }

    /// The tokens that stay free for the answer: an eighth of the window, at most [`RESERVE_MAX`], and at most the
    /// model's longest answer.
    #[must_use]
    pub fn reserve(&self) -> u64 {
        reserve_of(self.window, self.output_max)
    }

    /// The framing: the tokens that its provider adds around messages and tools.
    #[must_use]
    pub fn framing(&self) -> Framing {
        let framing = Framing::of(self.profile);
        match self.encoding.as_str() {
            "cl100k_base" => Framing { tools: ToolFraming::CL100K, ..framing },
            _ => framing,
        }
    }

    /// The rules of its provider for the tokens of media: those of its profile, with the model's own rule for
    /// images. A Gemini model with a fixed size for images is of the third generation, which has other rules for
    /// pages and videos too.
    #[must_use]
    pub fn media_rules(&self) -> MediaRules {
        let rules = match (self.profile, self.image) {
            (Profile::Gemini, Some(ImageRule::Fixed { .. })) => MediaRules::GEMINI_3,
            (profile, _) => MediaRules::of(profile),
        };
        self.image.map_or(rules, |image| MediaRules { image, ..rules })
    }

    /// The token counter of the model, with its framing and its rules for media.
    ///
    /// ```
    /// use epitome_core::TokenCounter;
    /// use epitome_message::models::Model;
    ///
    /// let counter = Model::new("my-model", 65_536).counter()?;
    /// assert_eq!(counter.count("Hello").0, 1);
    /// # Ok::<(), epitome_message::tokens::UnknownCounter>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownCounter`] if its encoding is not compiled in.
    pub fn counter(&self) -> Result<ModelCounter, UnknownCounter> {
        ModelCounter::new(self)
    }
}

/// The tokens of a window that stay free for an answer of at most `output_max` tokens: see [`Model::reserve`].
pub fn reserve_of(window: u64, output_max: Option<u64>) -> u64 {
    (window / 8).min(RESERVE_MAX).min(output_max.unwrap_or(u64::MAX))
}

/// An unknown model name. The error message contains the nearest known names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownModel {
    /// The given name.
    pub name: String,
    /// The nearest known names, nearest first; at most three, none if no name is near.
    pub nearest: Vec<String>,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no model is called {:?}", self.name)?;
        if !self.nearest.is_empty() {
            write!(f, ", did you mean {}?", self.nearest.join(", "))?;
        }
        f.write_str("; give its window and counter yourself, or a table with a row for it")
    }
}

impl Error for UnknownModel {}

/// The built-in rows.
const TABLE: &str = include_str!("models/table.csv");

#[cfg(test)]
mod tests;
