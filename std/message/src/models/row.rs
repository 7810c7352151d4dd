//! The parser of the rows of a table.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use epitome_core::{ImageRule, Profile};

use super::{Model, Prices};

/// The models of `csv`.
pub(super) fn parse(csv: &str) -> Result<Vec<Model>, RowError> {
    let lines = csv.lines().enumerate().map(|(at, line)| (at.saturating_add(1), line.trim()));
    lines
        .filter(|(_, line)| !(line.is_empty() || line.starts_with('#') || line.starts_with("name,")))
        .map(|(at, line)| row(line).map_err(|what| RowError { line: at, what }))
        .collect()
}

fn row(line: &str) -> Result<Model, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [name, profile, encoding, window, input, output, image, prices, source, date] = fields.as_slice()
    else {
        return Err(format!("{} fields, where there are 10: {COLUMNS}", fields.len()));
    };
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    let Some(known) = Profile::by_name(profile) else {
        let names: Vec<_> = Profile::ALL.iter().map(|profile| profile.as_str()).collect();
        return Err(format!("no profile is called {profile:?}; known: {}", names.join(", ")));
    };
    let mut model = Model::new(name, number("window", window)?.ok_or("the window is empty")?);
    model.profile = known;
    if !encoding.is_empty() {
        model.encoding = (*encoding).to_owned();
    }
    model.input_max = number("input", input)?;
    model.output_max = number("output", output)?;
    model.image = image_rule(image)?;
    model.prices = price_list(prices)?;
    (model.source, model.date) = ((*source).to_owned(), (*date).to_owned());
    model.budget().map_err(|error| error.to_string())?;
    Ok(model)
}

/// A positive number of tokens; `None` if the field is empty.
fn number(column: &str, field: &str) -> Result<Option<u64>, String> {
    if field.is_empty() {
        return Ok(None);
    }
    match field.parse() {
        Ok(0) | Err(_) => {
            Err(format!("{column} is {field:?}; expected a number of tokens, for example 128000"))
        }
        Ok(tokens) => Ok(Some(tokens)),
    }
}

/// The rule in a field; `None` for `none` and for an empty field.
fn image_rule(field: &str) -> Result<Option<ImageRule>, String> {
    let (kind, figures) = field.split_once(':').unwrap_or((field, ""));
    let figures: Option<Vec<u32>> =
        figures.split(['+', '/', '*']).map(|figure| figure.parse().ok()).collect();
    Ok(Some(match (kind, figures.as_deref()) {
        ("" | "none", _) => return Ok(None),
        ("tiles", Some(&[base, tile])) => ImageRule::Tiles { base, tile },
        ("patches", Some(&[edge_max, patches_max, per_mille])) => {
            ImageRule::Patches { edge_max, patches_max, per_mille }
        }
        ("squares", Some(&[edge_max, tokens_max])) => ImageRule::Squares { edge_max, tokens_max },
        ("area", Some(&[edge_max, tokens_max])) => ImageRule::Area { edge_max, tokens_max },
        ("crops", Some(&[tokens])) => ImageRule::Crops { tokens },
        ("fixed", Some(&[tokens])) => ImageRule::Fixed { tokens },
        _ => {
            return Err(format!(
                "no rule for images is {field:?}; known: tiles:85+170, patches:2048/1536*1620, squares:1568/1568, \
                 area:1568/1600, crops:258, fixed:256, none"
            ));
        }
    }))
}

/// The prices in a field; `None` for an empty field.
fn price_list(field: &str) -> Result<Option<Prices>, String> {
    if field.is_empty() {
        return Ok(None);
    }
    let figures: Vec<&str> = field.split('/').collect();
    let read = || {
        let (write, read, output, cached_min, seconds) = match *figures.as_slice() {
            [write, read, output, cached_min] => (write, read, output, cached_min, None),
            [write, read, output, cached_min, seconds] => (write, read, output, cached_min, Some(seconds)),
            _ => return None,
        };
        let lifetime = match seconds {
            Some(seconds) => Some(Duration::from_secs(seconds.parse().ok()?)),
            None => None,
        };
        let write = thousandths(write)?;
        let cached_min = cached_min.parse().ok()?;
        Some(Prices { write, cached_min, lifetime, ..Prices::new(thousandths(read)?, thousandths(output)?) })
    };
    read().map(Some).ok_or_else(|| {
        format!(
            "prices are {field:?}; expected multiples of an input token, and tokens and seconds of the cache, for example \
             1.25/0.1/5/1024/300"
        )
    })
}

/// A multiple with at most three digits behind its point, in thousandths.
fn thousandths(multiple: &str) -> Option<u32> {
    let (whole, rest) = multiple.split_once('.').unwrap_or((multiple, ""));
    let digits = rest.bytes().all(|byte| byte.is_ascii_digit()) && rest.len() <= 3;
    let rest: u32 = if digits { format!("{rest:0<3}").parse().ok()? } else { return None };
    whole.parse::<u32>().ok()?.checked_mul(1_000)?.checked_add(rest)
}

/// An invalid row of a table of models.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowError {
    /// The line, counted from 1.
    pub line: usize,
    /// The error, and the expected value.
    pub what: String,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the table of models: {}", self.line, self.what)
    }
}

impl Error for RowError {}

const COLUMNS: &str = "name,profile,encoding,window,input,output,image,prices,source,date";
