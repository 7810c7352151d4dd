//! The table of agents: the places of their sessions, and the fields with the project and the id of a session. The
//! search for files and their reading are in other modules.

use epitome::wire::Format;

/// An agent that stores sessions, according to its sources and documentation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) format: Format,
    /// The environment variable that names its folder.
    pub(super) variable: Option<&'static str>,
    /// The folder in the user's home, if the variable does not name another.
    pub(super) folder: &'static str,
    /// The paths of sessions in that folder. A `*` stands for any characters of a name.
    pub(super) sessions: &'static [&'static str],
    /// The names of files in the same folders that are no sessions.
    pub(super) others: Option<&'static str>,
    /// The field with the folder of a session's project: a JSON pointer into one of its first records.
    pub(super) project: Option<&'static str>,
    /// The field with the id of the session, likewise a JSON pointer.
    pub(super) id: Option<&'static str>,
}

/// All agents whose sessions are files of their own.
pub(super) const AGENTS: &[Agent] = &[
    Agent {
        format: Format::ClaudeCode,
        variable: Some("CLAUDE_CONFIG_DIR"),
        folder: ".claude",
        sessions: &["projects/*/*.jsonl"],
        others: Some("agent-*"),
        project: Some("/cwd"),
        id: Some("/sessionId"),
    },
    Agent {
        format: Format::Codex,
        variable: Some("CODEX_HOME"),
        folder: ".codex",
        sessions: &["sessions/*/*/*/rollout-*.jsonl"],
        others: None,
        project: Some("/payload/cwd"),
        id: Some("/payload/id"),
    },
    // Gemini CLI writes lines since 0.39, and stores the folder of a project beside its sessions.
    Agent {
        format: Format::GeminiCli,
        variable: Some("GEMINI_CLI_HOME"),
        folder: "",
        sessions: &[".gemini/tmp/*/chats/session-*.json", ".gemini/tmp/*/chats/session-*.jsonl"],
        others: None,
        project: None,
        id: Some("/sessionId"),
    },
    Agent {
        format: Format::CopilotCli,
        variable: Some("COPILOT_HOME"),
        folder: ".copilot",
        sessions: &["session-state/*/events.jsonl", "session-state/*.jsonl"],
        others: None,
        project: Some("/data/context/cwd"),
        id: Some("/data/sessionId"),
    },
    // The name of a folder below `projects` is made from the folder of the project.
    Agent {
        format: Format::Cursor,
        variable: None,
        folder: ".cursor",
        sessions: &["projects/*/agent-transcripts/*.jsonl", "projects/*/agent-transcripts/*/*.jsonl"],
        others: None,
        project: None,
        id: None,
    },
    Agent {
        format: Format::Pi,
        variable: Some("PI_CODING_AGENT_DIR"),
        folder: ".pi/agent",
        sessions: &["sessions/*/*.jsonl"],
        others: None,
        project: Some("/cwd"),
        id: Some("/id"),
    },
    Agent {
        format: Format::Continue,
        variable: Some("CONTINUE_GLOBAL_DIR"),
        folder: ".continue",
        sessions: &["sessions/*.json"],
        others: Some("sessions.json"),
        project: Some("/workspaceDirectory"),
        id: Some("/sessionId"),
    },
    // Cline and Roo Code, in any editor that is made from VS Code.
    Agent {
        format: Format::Cline,
        variable: CONFIGURATION.0,
        folder: CONFIGURATION.1,
        sessions: &[
            "*/User/globalStorage/saoudrizwan.claude-dev/tasks/*/api_conversation_history.json",
            "*/User/globalStorage/rooveterinaryinc.roo-cline/tasks/*/api_conversation_history.json",
        ],
        others: None,
        project: None,
        id: None,
    },
];

/// Folder of a user's settings in editors of the family of VS Code: the variable and the folder of Electron's `appData`.
const CONFIGURATION: (Option<&str>, &str) = if cfg!(target_os = "macos") {
    (None, "Library/Application Support")
} else if cfg!(windows) {
    (Some("APPDATA"), "AppData/Roaming")
} else {
    (Some("XDG_CONFIG_HOME"), ".config")
};

impl Agent {
    /// The folder, within the folder of the agent, that contains all its sessions at some depth.
    pub(super) fn root(&self) -> &'static str {
        let first = self.sessions.first().copied().unwrap_or_default();
        let root = first.split_once('*').map_or(first, |(root, _)| root);
        root.trim_end_matches('/')
    }
}

/// Whether a name matches a pattern.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((begin, end)) => name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_of_a_name() {
        assert!(matches("*", "") && matches("*", "any") && matches("a.json", "a.json"));
        assert!(matches("session-*.json", "session-1.json") && matches("aa*", "aa"));
        assert!(!matches("session-*.json", "session-1.jsonl") && !matches("a.json", "b.json"));
        // Beginning and end may not share a character.
        assert!(!matches("ab*ba", "aba"));
    }
}
