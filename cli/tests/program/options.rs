//! Wrong options: exit code 2, and the message names the known values.

use super::support::*;

fn refused(args: &[&str], parts: &[&str]) {
    let file = example("coding-agent.json");
    let message = run(&[&["compact", text(&file)], args].concat()).fails(2);
    for part in parts {
        assert!(message.contains(part), "{args:?}: {part:?} is not in: {message}");
    }
}

#[test]
fn unknown_names() {
    refused(
        &["--strategy", "trunkate"],
        &["--strategy: there is no strategy \"trunkate\"; the nearest is truncate; known: truncate, window"],
    );
    refused(&["--strategy", "truncate,,window"], &["known: truncate, window"]);
    refused(
        &["--strategy", "truncate:kepe=3"],
        &[
            "truncate has no parameter \"kepe\"; the nearest is preserve-recent; known: preserve-recent, preserve-system",
        ],
    );
    refused(&["--strategy", "window:turns=-1"], &["window: keep-turns cannot be \"-1\"; known: a number"]);
    refused(
        &["--strategy", "tool-digest | truncate"],
        &["tool-digest has to come last", "write truncate | tool-digest\n"],
    );
    refused(
        &["--tokenizer", "gpt"],
        &["--tokenizer: ", "\"gpt\"; known: estimate, ", "o200k_base", "cl100k_base"],
    );
    refused(
        &["--profile", "mistrial"],
        &["'mistrial' for '--profile", "[possible values: openai-chat, ", "value exists: 'mistral'"],
    );
    refused(&["--from", "xml"], &["'xml' for '--from", "auto, openai-chat"]);
    refused(&["--frob"], &["--frob"]);
    assert!(run(&["shrink", "x"]).fails(2).contains("'shrink'"));
    assert!(run(&["compact"]).fails(2).contains("standard input: there is no JSON"));
    assert!(run(&["diff", "x"]).fails(2).contains("<OTHER>"));
}

#[test]
fn amounts_that_make_no_sense() {
    for args in [
        &["search", "x", "--limit", "0"][..],
        &["session", "rewind", "--turns", "0"],
        &["bench", "--rounds", "0"],
    ] {
        assert!(run(args).fails(2).contains("expected a whole number from 1"), "{args:?}");
    }
    refused(&["--keep", "50%", "--goal", "10"], &["'--keep <P%>' cannot be used with '--goal <N|P%>'"]);
    for keep in ["50", "101%", "-1%", "half", "5,5%"] {
        refused(&["--keep", keep], &["0% to 100%"]);
    }
    for window in ["8k", "-5", "", "99999999999999999999", "50%"] {
        refused(&["--window", window], &["expected a number of tokens, for example 8000\n"]);
    }
    refused(&["--goal", "8k"], &["for example 8000, or a share like 50%"]);
    refused(&["--window", "0"], &["leaves nothing of the window (0)"]);
    refused(
        &["--window", "100", "--reserve", "100"],
        &["the reserve (100) leaves nothing of the window (100)", "raise --window"],
    );
    refused(&["--trigger", "120000"], &["the trigger (120000) is above window - reserve (119808)"]);
    refused(&["--trigger", "0"], &["the trigger (0) is too low for any goal: raise --trigger"]);
    refused(
        &["--trigger", "50%", "--goal", "60%"],
        &["the goal (71884) must be under the trigger (59904): lower --goal, or raise --trigger"],
    );
    // Without `--trigger`, the message does not blame the trigger.
    refused(
        &["--goal", "119809"],
        &["the goal (119809) is above window - reserve (119808): lower --goal, or raise --window"],
    );
    refused(&["--window", "1"], &["the window (1) is too small for any goal: raise --window"]);
    refused(
        &["--keep", "90%", "--trigger", "1000", "--window", "8000"],
        &[
            "the share to keep (90% of the transcript, ",
            " tokens) must be under the trigger (1000): lower --keep, or raise --trigger",
        ],
    );
}

#[test]
fn help_says_what_there_is() {
    for args in [
        &["--help"][..],
        &["compact", "--help"],
        &["bench", "--help"],
        &["show", "--help"],
        &["sessions", "--help"],
        &["session", "--help"],
        &["session", "import", "--help"],
    ] {
        assert!(run(args).ok().contains("Usage: epitome "));
    }
    let codes = run(&["--help"]).ok().replace('\n', " ");
    for part in [
        "0 done",
        "1 a validation or a repair leaves violations, or a search finds nothing",
        "2 bad input or usage",
        "4 a file or store failed",
        "5 the result would not read back as planned",
    ] {
        assert!(codes.contains(part), "{codes}");
    }
    assert!(run(&["--version"]).ok().starts_with("epitome "));
}

#[test]
fn numbers_at_the_edge_do_not_overflow() {
    let file = example("coding-agent.json");
    let most = u64::MAX.to_string();
    for args in [
        ["--window", &most, "--reserve", "0"],
        ["--goal", "0", "--window", &most],
        ["--window", &most, "--goal", "99%"],
    ] {
        report(&file, &args);
    }
    report(
        &file,
        &[
            "--strategy",
            &format!("window:turns={most},window:tokens={most},truncate:recent={most}"),
            "--goal",
            "0",
        ],
    );
}
