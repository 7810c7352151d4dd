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
//! This is not a list of all models, and no guess: what is not in the table is [`UnknownModel`]. Add rows of your own with
//! [`Models::with_rows`] or [`Models::with`]; they come before those of the same name that are built in.
//!
//! # Names
//! Case does not matter. A name is looked up as it is; then without the vendor (all up to the last `/`; a region and a
//! vendor as Bedrock writes them, `us.anthropic.`), and without what follows a `:` or `@`; then, again and again, without
//! one ending: a version (`-v1`), a date (`-2024-08-06`, `-20241022`, `-05-06`), `-latest`, `-preview`, `-0`. Nothing else
//! is left out: `gpt-4o-audio` is not `gpt-4o`.

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
    /// The profile of rules and framing that it follows.
    pub profile: Profile,
    /// The name of its token counter, as [`counter_by_name`](crate::tokens::counter_by_name) knows it.
    pub encoding: String,
    /// Request and answer together, in tokens.
    pub window: u64,
    /// The most that a request may have, if that is less than the window, in tokens.
    pub input_max: Option<u64>,
    /// The most that an answer may have, in tokens.
    pub output_max: Option<u64>,
    /// The tokens of an image; `None` if it takes none, or nothing is published: then that of its profile is used.
    pub image: Option<ImageRule>,
    /// The prices of its tokens; `None` if they are not published, or it has no prompt cache.
    pub prices: Option<Prices>,
    /// The source of the figures.
    pub source: String,
    /// The date of the figures, as `YYYY-MM-DD`.
    pub date: String,
}

impl Models {
    /// The table that is built in.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: LazyLock<Models> =
            // A row that cannot be read would be missing; a test reads them all.
            LazyLock::new(|| Models { rows: row::parse(TABLE).unwrap_or_default() });
        &BUILTIN
    }

    /// This table after the rows of `csv`, in the form of `std/message/src/models/table.csv`: lines of
    /// `name,profile,encoding,window,input,output,image,prices,source,date`, where `input`, `output`, `prices`, `source` and
    /// `date` may be empty. Empty lines, lines that begin with `#`, and a line that begins with `name,` say nothing.
    ///
    /// # Errors
    /// [`RowError`]: the line, and what is wrong with it.
    pub fn with_rows(&self, csv: &str) -> Result<Self, RowError> {
        let mut rows = row::parse(csv)?;
        rows.extend(self.rows.iter().cloned());
        Ok(Self { rows })
    }

    /// This table after `model`.
    #[must_use]
    pub fn with(mut self, model: Model) -> Self {
        self.rows.insert(0, model);
        self
    }

    /// The model called `name`: see [names](self#names).
    ///
    /// # Errors
    /// [`UnknownModel`], with the names that are most like it.
    pub fn find(&self, name: &str) -> Result<&Model, UnknownModel> {
        let forms = name::forms(name);
        let found = forms.iter().find_map(|form| self.rows.iter().find(|model| model.name == *form));
        found.ok_or_else(|| UnknownModel {
            name: name.to_owned(),
            nearest: name::nearest(&forms, self.rows.iter().map(|model| model.name.as_str())),
        })
    }

    /// All models, in the order in which they are looked up.
    pub fn iter(&self) -> impl Iterator<Item = &Model> {
        self.rows.iter()
    }
}

impl Model {
    /// A model with this window, counted by the estimator, of the profile [`Profile::OpenaiChat`].
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

    /// The budget of its requests: the defaults of [`Budget`], where the reserve is never more than the model can answer,
    /// and the limit never more than it takes as a request.
    ///
    /// # Errors
    /// [`BudgetError`] for a window that is too small for any budget.
    pub fn budget(&self) -> Result<Budget, BudgetError> {
        Budget::builder().window(self.budget_window()).reserve(self.reserve()).build()
    }

    /// The window that a budget is made of, in tokens: the model's, or what it takes as a request and the reserve, if that
    /// is less.
    #[must_use]
    pub fn budget_window(&self) -> u64 {
        let by_input = self.input_max.map(|input| input.saturating_add(self.reserve()));
        by_input.map_or(self.window, |most| most.min(self.window))
    }

    /// The tokens that stay free for the answer: an eighth of the window, at most [`RESERVE_MAX`], and never more than
    /// the model can answer.
    #[must_use]
    pub fn reserve(&self) -> u64 {
        reserve_of(self.window, self.output_max)
    }

    /// The tokens that its provider adds around messages and tools.
    #[must_use]
    pub fn framing(&self) -> Framing {
        let framing = Framing::of(self.profile);
        match self.encoding.as_str() {
            "cl100k_base" => Framing { tools: ToolFraming::CL100K, ..framing },
            _ => framing,
        }
    }

    /// The rules by which its provider counts media: those of its profile, with its own rule for images. A model of Gemini that gives every
    /// image the same is of the third generation, whose pages and videos count otherwise too.
    #[must_use]
    pub fn media_rules(&self) -> MediaRules {
        let rules = match (self.profile, self.image) {
            (Profile::Gemini, Some(ImageRule::Fixed { .. })) => MediaRules::GEMINI_3,
            (profile, _) => MediaRules::of(profile),
        };
        self.image.map_or(rules, |image| MediaRules { image, ..rules })
    }

    /// Its counter, with its framing and its rules for media.
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

/// No model has this name. The message names those that are most like it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownModel {
    /// The name that was asked for.
    pub name: String,
    /// Known names, the most like it first; at most three, none if nothing is like it.
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

/// The rows that are built in.
const TABLE: &str = include_str!("models/table.csv");

#[cfg(test)]
mod tests;
