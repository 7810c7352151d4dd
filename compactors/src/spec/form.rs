//! Strategies in JSON and TOML.

use serde::de::Error as _;
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;
use std::string::String;
use std::vec::Vec;

use super::parse::{self, Said};
use super::{SpecError, Stage, StrategySpec, Value};

/// Key of a stage's strategy name.
const NAME: &str = "strategy";

const A_STAGE: &str =
    "a table with the name of a strategy at \"strategy\", or a list of such tables, or text";
const ONE_EACH: &str = "one strategy in each text of a list";
const A_NAME: &str = "a name at \"strategy\"";

/// One stage is a table, several are a list of tables.
impl Serialize for StrategySpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let [only] = self.stages.as_slice() {
            return only.serialize(serializer);
        }
        let mut list = serializer.serialize_seq(Some(self.stages.len()))?;
        self.stages.iter().try_for_each(|stage| list.serialize_element(stage))?;
        list.end()
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = serializer.serialize_map(None)?;
        table.serialize_entry(NAME, self.row.name)?;
        for (at, value) in &self.said {
            let Some(parameter) = self.row.parameters.get(*at) else { continue };
            match value {
                Value::Number(number) => table.serialize_entry(parameter.name, number)?,
                Value::Switch(on) => table.serialize_entry(parameter.name, on)?,
                Value::Word(word) => table.serialize_entry(parameter.name, word)?,
                Value::Tools(tools) => table.serialize_entry(parameter.name, tools)?,
            }
        }
        table.end()
    }
}

impl<'de> Deserialize<'de> for StrategySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        spec(Json::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn spec(document: Json) -> Result<StrategySpec, SpecError> {
    match document {
        Json::String(text) => text.parse(),
        Json::Array(stages) => {
            StrategySpec::checked((1..).zip(stages).map(one_of_list).collect::<Result<_, _>>()?)
        }
        other => StrategySpec::checked([stage(other)?].into()),
    }
}

/// A stage of a list; it may be a table or a text.
fn one_of_list((number, document): (usize, Json)) -> Result<Stage, SpecError> {
    let Json::String(text) = document else { return stage(document) };
    if text.trim().is_empty() {
        return Err(SpecError::Empty { stage: number });
    }
    let mut stages = parse::stages(&text)?.into_iter();
    match (stages.next(), stages.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(SpecError::Form { expected: ONE_EACH }),
    }
}

fn stage(document: Json) -> Result<Stage, SpecError> {
    let Json::Object(mut fields) = document else { return Err(SpecError::Form { expected: A_STAGE }) };
    let Some(Json::String(name)) = fields.remove(NAME) else {
        return Err(SpecError::Form { expected: A_NAME });
    };
    let mut stage = Stage::named(&name)?;
    for (name, value) in &fields {
        stage.say(name, said(value))?;
    }
    Ok(stage)
}

/// Converts a value. A value that no parameter accepts becomes an empty list, or an empty name, of tools, and is
/// refused later.
fn said(value: &Json) -> Said<'_> {
    match value {
        Json::String(text) => Said::Text(Some(text)),
        Json::Bool(on) => Said::Switch(*on),
        Json::Number(number) => number.as_u64().map_or(Said::Tools(Vec::new()), Said::Number),
        Json::Array(tools) => {
            let names = tools.iter().map(|tool| tool.as_str().unwrap_or_default().into());
            Said::Tools(names.collect::<Vec<String>>())
        }
        Json::Null | Json::Object(_) => Said::Tools(Vec::new()),
    }
}
