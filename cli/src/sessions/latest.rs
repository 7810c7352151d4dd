//! `latest` in the place of a file.

use super::{Found, Home, Project, Wanted, find, nothing};
use crate::failure::{Failure, Result};
use crate::output;
use crate::visible::line;

/// What stands for the newest session. A file of that name is `./latest`.
pub(crate) const LATEST: &str = "latest";

/// The newest session of `project`; without one, of the folder that the program runs in, or if that has none, of all.
/// Says on standard error which it is.
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
    tell(newest);
    Ok(newest.clone())
}

fn tell(newest: &Found) {
    let (tool, path) = (newest.tool(), line(&newest.path.display().to_string()));
    output::tell(format!("epitome: latest is {path} ({tool})"));
}
