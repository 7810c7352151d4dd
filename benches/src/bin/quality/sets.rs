//! The measured conversations.

use std::path::{Path, PathBuf};

/// A set of conversations that are measured together.
pub(crate) struct Set {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) files: Vec<PathBuf>,
    /// Whether the plots show the set.
    pub(crate) is_plotted: bool,
}

impl Set {
    pub(crate) fn of_files(files: &[PathBuf]) -> Self {
        Self {
            name: "Conversations",
            about: "Those of the command line.",
            files: files.to_vec(),
            is_plotted: true,
        }
    }

    /// The examples and, without `smoke`, the recorded conversations of this folder, or of `../shared/data` if that
    /// exists.
    pub(crate) fn all(smoke: bool, folder: Option<&Path>) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut sets = vec![Self {
            name: "The example of this repository",
            about: "`examples/coding-agent.json`, a short conversation.",
            files: vec![root.join("examples/coding-agent.json")],
            is_plotted: false,
        }];
        if smoke {
            return sets;
        }
        match folder.map(Path::to_owned).or_else(|| data(&root)) {
            Some(folder) => {
                let files = |names: &[&str]| names.iter().map(|name| folder.join(name)).collect();
                sets.push(Self {
                    name: "Held back",
                    about: HELD_BACK_ABOUT,
                    files: files(HELD_BACK),
                    is_plotted: true,
                });
                sets.push(Self {
                    name: "Tuned on",
                    about: TUNED_ON_ABOUT,
                    files: files(TUNED_ON),
                    is_plotted: false,
                });
            }
            None => println!("skipped: the conversations of ../shared/data, which is not there\n"),
        }
        sets
    }
}

/// The folder of recorded conversations, in the parent folders of the project.
fn data(root: &Path) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    root.ancestors().map(|above| above.join("shared/data")).find(|folder| folder.is_dir())
}

const HELD_BACK_ABOUT: &str = "Ten recorded conversations of coding and research agents on which nothing was tuned: three of Claude Code, \
    three of Codex, four of deer-flow.";

const HELD_BACK: &[&str] = &[
    "anthropic/cctrace__claude_code_main.jsonl",
    "anthropic/agentcmd__claude_full-session-four.jsonl",
    "anthropic/agentcmd__claude_full-session-two.jsonl",
    "openai_responses/agentcmd__codex_2025-09-24T20-12-23.jsonl",
    "openai_responses/agentcmd__codex_2025-09-25T09-49-46.jsonl",
    "openai_responses/agentcmd__codex_2025-09-25T15-12-14.jsonl",
    "langchain/deer-flow__7f9dc56c.json",
    "langchain/deer-flow__b83fbb2a.json",
    "langchain/deer-flow__c02bb4d5.json",
    "langchain/deer-flow__d3e5adaf.json",
];

const TUNED_ON_ABOUT: &str = "Seven others, which weights and shares were chosen on: figures on conversations of anybody else are \
    rather those above.";

const TUNED_ON: &[&str] = &[
    "anthropic/agentcmd__claude_full-session-five.jsonl",
    "openai_responses/agentcmd__codex_2025-09-24T19-22-20.jsonl",
    "openai_responses/agentcmd__codex_2025-09-25T08-02-05.jsonl",
    "langchain/deer-flow__5aa47db1.json",
    "langchain/deer-flow__7cfa5f8f.json",
    "pi_session/pi-mono__large-session.jsonl",
    "anthropic/claude-code-viewer__fe5e1c67.jsonl",
];
