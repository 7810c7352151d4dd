//! `latest` and the ids of sessions in the place of a file name.

use std::path::{Component, Path};

use super::{Found, Home, Project, Wanted, find, nothing};
use crate::failure::{Failure, Result};
use crate::output;
use crate::visible::line;

/// Name for the newest session. A file of that name is `./latest`.
pub(crate) const LATEST: &str = "latest";

/// The newest session of `project`; without a project, of the current folder, or of all projects if that has none.
/// Reports the choice on standard error.
pub(crate) fn latest(project: Option<&str>) -> Result<Found> {
    let homes = Home::all()?;
    let mut found = find(&homes);
    found.retain(|found| found.is_regular);
    let of = |wanted: &Wanted| found.iter().find(|found| wanted.is(&Project::of(found)));
    let newest = match project {
        Some(project) => of(&Wanted::named(project)),
        None => of(&Wanted::here()).or_else(|| found.first()),
    };
    let Some(newest) = newest else {
        return Err(Failure::input(format!("latest: {}", nothing(&homes, project))));
    };
    tell(LATEST, newest);
    Ok(newest.clone())
}

/// The session with the id `name`, or the only one whose id begins with it; `None` if there is none, or if a file has
/// this name. Of several files with this id, the newest. Reports the choice on standard error.
///
/// # Errors
///
/// The ids of several sessions begin with `name`.
pub(crate) fn of_id(name: &Path) -> Result<Option<Found>> {
    let is_name = matches!(name.components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    let Some(text) = name.to_str().filter(|_| is_name && !name.exists()) else { return Ok(None) };
    if text.len() < ID_BYTES_MIN {
        return Ok(None);
    }
    let Ok(homes) = Home::all() else { return Ok(None) };
    let found = find(&homes).into_iter().filter(|found| found.is_regular);
    let mut named: Vec<_> = found.map(|found| (Project::of(&found).id, found)).collect();
    named.retain(|(id, _)| id.starts_with(text));
    if named.iter().any(|(id, _)| id == text) {
        named.retain(|(id, _)| id == text);
    }
    let Some((id, newest)) = named.first() else { return Ok(None) };
    if let Some((other, _)) = named.iter().find(|(other, _)| other != id) {
        return Err(Failure::input(format!(
            "several sessions begin with {text:?}, {id:?} and {other:?} among them: give more of the id"
        )));
    }
    tell(id, newest);
    Ok(Some(newest.clone()))
}

/// Minimum length of the beginning of an id, in bytes: a shorter name is a misspelled name of a file.
const ID_BYTES_MIN: usize = 4;

fn tell(name: &str, found: &Found) {
    let (tool, path) = (found.tool(), found.path.display());
    output::tell(line(&format!("epitome: {name} is {path} ({tool})")));
}
