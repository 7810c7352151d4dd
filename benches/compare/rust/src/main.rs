//! Epitome beside the crates and packages that keep a history within a limit: tables as Markdown on standard output, plots
//! as SVG in a folder. `benches/compare/run.sh` builds and calls it.
//!
//! Arguments: `epitome_benches::compare::run::Options`. It fails if Epitome's own strategies are at fault in the sweep.

#[cfg(feature = "agent-framework")]
mod agent_framework;
#[cfg(feature = "langchain")]
mod langchain;
#[cfg(feature = "machi")]
mod machi;
mod plots;
#[cfg(feature = "rig")]
mod rig;

use std::process::ExitCode;

use epitome_benches::compare::contender::Contender;
use epitome_benches::compare::run::{Options, run};
use epitome_core::message::Role;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let report = run(&options, rivals());
    print!("{}", report.to_markdown());
    if let Some(folder) = &options.plots {
        plots::draw(&report, folder).unwrap();
    }
    let faults: Vec<_> = report.faults_of_ours().collect();
    if faults.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("the sweep has found faults of our own: {}", faults.join(", "));
    ExitCode::FAILURE
}

/// The rivals that were built. A rival that was not built has a row of its own: see `--not-run`.
fn rivals() -> Vec<Box<dyn Contender>> {
    let mut rivals: Vec<Box<dyn Contender>> = Vec::new();
    #[cfg(feature = "agent-framework")]
    rivals.extend(agent_framework::AgentFramework::ALL.map(|rival| Box::new(rival) as _));
    #[cfg(feature = "rig")]
    rivals.extend(rig::Rig::ALL.map(|rival| Box::new(rival) as _));
    #[cfg(feature = "machi")]
    rivals.push(Box::new(machi::Machi));
    #[cfg(feature = "langchain")]
    rivals.extend(langchain::LangChain::ALL.map(|rival| Box::new(rival) as _));
    rivals
}

/// The role that is called so everywhere.
fn role_named(name: &str) -> Role {
    [Role::System, Role::User, Role::Assistant, Role::Tool]
        .into_iter()
        .find(|role| role.as_str() == name)
        .unwrap()
}

/// A crate with the version that the lock file has pinned.
fn version(name: &str) -> String {
    let packages = include_str!("../Cargo.lock").split("[[package]]");
    let mut found = packages.filter_map(|package| {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            line.map(|line| line.trim_end_matches('"'))
        };
        (value("name")? == name).then(|| value("version"))?
    });
    format!("{name} {}", found.next().unwrap())
}
