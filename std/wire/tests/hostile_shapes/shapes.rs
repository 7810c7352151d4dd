//! Hostile texts of any size: no person or tool would write them.

mod lines;

use epitome_wire::Format;

use lines::{
    chatgpt, claude, claude_ai, claude_boundary, claude_call, claude_line, claude_result, claude_says,
    claude_user, codex_compacted, codex_item, codex_line, codex_report, codex_said, comb, gemini,
    gemini_answer, gemini_call, gemini_user, lines, pi, pi_cut, pi_user,
};

/// A text of a size that grows with a number.
pub(crate) type Shape = fn(usize) -> String;

/// All shapes. Each text is twice as long for twice the number.
pub(crate) const SHAPES: &[(&str, Format, Shape)] = &[
    ("claude-code chain", Format::ClaudeCode, |n| claude(n, |at| (at.checked_sub(1), false))),
    ("claude-code star", Format::ClaudeCode, |n| claude(n, |at| (at.checked_sub(1).map(|_| 0), false))),
    ("claude-code comb", Format::ClaudeCode, |n| claude(n, |at| (comb(at), false))),
    ("claude-code binary tree", Format::ClaudeCode, |n| {
        claude(n, |at| (at.checked_sub(1).map(|at| at / 2), false))
    }),
    ("claude-code two combs in turn", Format::ClaudeCode, |n| {
        claude(n, |at| (at.checked_sub(2).and_then(|at| Some(comb(at / 2)? * 2 + at % 2)), false))
    }),
    ("claude-code comb of comb", Format::ClaudeCode, |n| {
        claude(n, |at| {
            (
                if at % 3 == 2 {
                    Some(at - 1)
                } else {
                    at.checked_sub(at % 3).and_then(|at| at.checked_sub(3 - at % 3))
                },
                false,
            )
        })
    }),
    ("claude-code side chains", Format::ClaudeCode, |n| {
        claude(n, |at| (if at % 4 == 1 { None } else { at.checked_sub(1) }, at % 4 != 0))
    }),
    ("claude-code titles on a comb", Format::ClaudeCode, |n| {
        let titles =
            lines(n, |at| format!(r#"{{"type":"summary","summary":"title {at}","leafUuid":"u{at}"}}"#));
        format!("{}\n{titles}", claude(n, |at| (comb(at), false)))
    }),
    ("claude-code tasks on a star", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_says(
                at,
                Some(0),
                &at.to_string(),
                &format!(
                    r#"{{"type":"tool_use","id":"c{at}","name":"Task","input":{{"prompt":"word {}","description":"d {at}"}}}}"#,
                    at + 1
                ),
            ),
            _ => claude_line(at, None, true, &format!(r#"{{"role":"user","content":"word {at}"}}"#), "user"),
        })
    }),
    ("claude-code one response on a star", Format::ClaudeCode, |n| {
        lines(n, |at| claude_says(at, at.checked_sub(1).map(|_| 0), "r", r#"{"type":"text","text":"more"}"#))
    }),
    ("claude-code one response, each line gone on from", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_says(at, at.checked_sub(2), "r", r#"{"type":"text","text":"more"}"#),
            _ => claude_user(at, Some(at - 1), "go on"),
        })
    }),
    ("claude-code calls on a chain, answers beside it", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_says(at, at.checked_sub(2), &at.to_string(), &claude_call(&at.to_string())),
            _ => claude_result(at, Some(at - 1), &(at - 1).to_string()),
        })
    }),
    ("claude-code calls on a comb, answers and words beside it", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 3 {
            0 => claude_says(at, at.checked_sub(3), &at.to_string(), &claude_call(&at.to_string())),
            1 => claude_result(at, Some(at - 1), &(at - 1).to_string()),
            _ => claude_user(at, Some(at - 2), "no, wait"),
        })
    }),
    ("claude-code answers to one call on a star", Format::ClaudeCode, |n| {
        lines(n, |at| match at {
            0 => claude_says(0, None, "r", &claude_call("c")),
            at => claude_result(at, Some(0), "c"),
        })
    }),
    ("claude-code answers to one call on a comb", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_says(at, at.checked_sub(2), "r", &claude_call("c")),
            _ => claude_result(at, Some(at - 1), "c"),
        })
    }),
    ("claude-code calls and answers of one response in turn", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_says(at, at.checked_sub(2), "r", &claude_call(&at.to_string())),
            _ => claude_result(at, Some(at - 1), &(at - 1).to_string()),
        })
    }),
    ("claude-code boundaries in a chain", Format::ClaudeCode, |n| {
        // Whole groups of three, so that a text of twice the size has the same end.
        lines(n / 3 * 3, |at| match at % 3 {
            0 => claude_boundary(at, at.checked_sub(1)),
            1 => claude_user(at, Some(at - 1), "so far").replace("\"n\":1", "\"isCompactSummary\":true"),
            _ => claude_user(at, Some(at - 1), "more"),
        })
    }),
    ("claude-code boundaries behind one line", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_boundary(at, at.checked_sub(2).map(|_| 1)),
            _ => claude_user(at, Some(at - 1), "more"),
        })
    }),
    ("claude-code a chain of boundaries, then a star of them", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_boundary(
                at,
                if at < n / 2 {
                    at.checked_sub(1)
                } else {
                    Some((n / 2) | 1).filter(|last| *last < at).or_else(|| at.checked_sub(1))
                },
            ),
            _ => claude_user(at, Some(at - 1), "more"),
        })
    }),
    ("claude-code copies of one line", Format::ClaudeCode, |n| lines(n, |_| claude_user(0, None, "go"))),
    ("claude-code lines without messages", Format::ClaudeCode, |n| {
        lines(n, |at| match at % 2 {
            0 => claude_line(at, at.checked_sub(2), false, "null", "progress"),
            _ => claude_user(at, Some(at - 1), "go"),
        })
    }),
    ("codex chain", Format::Codex, |n| {
        lines(n, |at| codex_item(if at % 2 == 0 { "user" } else { "assistant" }, at))
    }),
    ("codex compacted, users stay", Format::Codex, |n| {
        lines(n, |at| if at % 2 == 0 { codex_item("user", at) } else { codex_compacted(at, "") })
    }),
    ("codex compacted, all answers go", Format::Codex, |n| {
        lines(n, |at| if at % 2 == 0 { codex_item("assistant", at) } else { codex_compacted(at, "") })
    }),
    ("codex compacted with a history", Format::Codex, |n| {
        lines(n, |at| {
            if at % 2 == 0 {
                codex_item("user", at)
            } else {
                codex_compacted(at, &codex_said("user", "kept"))
            }
        })
    }),
    ("codex one history of many, compacted again and again", Format::Codex, |n| {
        let history = vec![codex_said("user", "kept"); n / 2].join(",");
        format!("{}\n{}", codex_compacted(0, &history), lines(n / 2, |at| codex_compacted(at, "")))
    }),
    ("codex instructions and compactions", Format::Codex, |n| {
        lines(n, |at| {
            match at {
            0 => r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"/","base_instructions":{"text":"Be brief."}}}"#.to_owned(),
            at if at % 2 == 0 => codex_item("assistant", at),
            at => codex_compacted(at, &codex_said("user", "kept")),
        }
        })
    }),
    ("codex many reports, then many answers", Format::Codex, |n| {
        lines(n, |at| if at < n / 2 { codex_report(at) } else { codex_item("assistant", at) })
    }),
    ("codex reports and answers in turn", Format::Codex, |n| {
        lines(n, |at| if at % 2 == 0 { codex_report(at) } else { codex_item("assistant", at) })
    }),
    ("codex calls of one id", Format::Codex, |n| {
        lines(n, |at| match at % 2 {
            0 => codex_line(r#"{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}"#),
            _ => codex_line(r#"{"type":"function_call_output","call_id":"c","output":"x"}"#),
        })
    }),
    ("gemini-cli chain", Format::GeminiCli, |n| gemini(n, |at| gemini_user(at, "go"))),
    ("gemini-cli rewinds of one record", Format::GeminiCli, |n| {
        gemini(n, |at| match at {
            at if at < n / 2 => gemini_user(at, "go"),
            at if at % 2 == 0 => gemini_user(at, "once more"),
            at => format!(r#"{{"$rewindTo":"{}"}}"#, at - 1),
        })
    }),
    ("gemini-cli rewinds of more and more", Format::GeminiCli, |n| {
        gemini(n, |at| match at {
            at if at < n / 2 => gemini_user(at, "go"),
            at => format!(r#"{{"$rewindTo":"{}"}}"#, n - at),
        })
    }),
    ("gemini-cli comb of rewinds", Format::GeminiCli, |n| {
        gemini(n, |at| match at % 3 {
            0 | 1 => gemini_user(at, "go"),
            _ => format!(r#"{{"$rewindTo":"{}"}}"#, at - 1),
        })
    }),
    ("gemini-cli the first record said again, and rewinds", Format::GeminiCli, |n| {
        gemini(n, |at| match at % 3 {
            0 => gemini_user(0, "once more"),
            1 => gemini_user(at, "go"),
            _ => format!(r#"{{"$rewindTo":"{}"}}"#, at - 1),
        })
    }),
    ("gemini-cli checkpoints", Format::GeminiCli, |n| {
        gemini(n, |at| match at % 2 {
            0 => gemini_user(at, "go"),
            _ => format!(r#"{{"$set":{{"messages":[{}]}}}}"#, gemini_user(at, "so far")),
        })
    }),
    ("gemini-cli checkpoints that drop one of many", Format::GeminiCli, |n| {
        let all = (0..n / 2).map(|at| gemini_user(at, "go")).collect::<Vec<_>>().join(",");
        let end = gemini(n / 2, |at| {
            if at % 2 == 0 {
                gemini_user(n + at, "go")
            } else {
                format!(r#"{{"$rewindTo":"{}"}}"#, n + at - 1)
            }
        });
        format!("{end}\n{{\"$set\":{{\"messages\":[{all}]}}}}\n{{\"$set\":{{\"messages\":[{all}]}}}}")
    }),
    ("gemini-cli results of one id, answered and rewound", Format::GeminiCli, |n| {
        gemini(n, |at| match at {
            at if at < n / 2 => gemini_call(at, "c"),
            at if at % 2 == 0 => gemini_answer(at, "c"),
            at => format!(r#"{{"$rewindTo":"{}"}}"#, at - 1),
        })
    }),
    ("gemini-cli labels", Format::GeminiCli, |n| {
        gemini(n, |at| {
            if at == 0 { gemini_user(0, "go") } else { format!(r#"{{"$set":{{"summary":"s {at}"}}}}"#) }
        })
    }),
    ("pi chain", Format::Pi, |n| pi(n, |at| pi_user(at, at.checked_sub(1)))),
    ("pi star", Format::Pi, |n| pi(n, |at| pi_user(at, at.checked_sub(1).map(|_| 0)))),
    ("pi comb", Format::Pi, |n| pi(n, |at| pi_user(at, comb(at)))),
    ("pi compactions in a chain", Format::Pi, |n| {
        pi(n, |at| if at % 2 == 0 { pi_user(at, at.checked_sub(1)) } else { pi_cut(at, at - 1, at - 1) })
    }),
    ("pi compactions that keep all", Format::Pi, |n| {
        pi(n, |at| if at % 2 == 0 { pi_user(at, at.checked_sub(1)) } else { pi_cut(at, at - 1, 0) })
    }),
    ("pi compactions on a comb", Format::Pi, |n| {
        // Whole teeth, so that a file of any size has the same end.
        pi(n / 3 * 3, |at| match at % 3 {
            0 => pi_user(at, at.checked_sub(2)),
            1 => pi_cut(at, at - 1, at - 1),
            _ => pi_user(at, Some(at - 1)),
        })
    }),
    ("pi compactions of a long way that name another", Format::Pi, |n| {
        pi(n, |at| match at {
            at if at < n / 2 => pi_user(at, at.checked_sub(2)),
            at => pi_cut(at, n / 2 - 2, n / 2 - 3),
        })
    }),
    ("openhands condensations of one event", Format::OpenHands, |n| {
        let event = |at: usize| {
            format!(
                r#"{{"id":{at},"timestamp":"t","source":"user","message":"go","action":"message","args":{{"content":"go","image_urls":null,"wait_for_response":false}}}}"#
            )
        };
        let gone = |at: usize, first: usize| {
            format!(
                r#"{{"id":{at},"timestamp":"t","source":"agent","message":"","action":"condensation","args":{{"forgotten_events_start_id":{first},"forgotten_events_end_id":{first}}}}}"#
            )
        };
        let all = (0..n).map(|at| if at < n / 2 { event(at) } else { gone(at, at - n / 2) });
        format!("[{}]", all.collect::<Vec<_>>().join(","))
    }),
    ("openai-chat choices", Format::OpenaiChat, |n| {
        let choice = |at| {
            format!(
                r#"{{"index":{at},"finish_reason":"stop","message":{{"role":"assistant","content":"more"}}}}"#
            )
        };
        format!(
            r#"{{"object":"chat.completion","choices":[{}]}}"#,
            (0..n).map(choice).collect::<Vec<_>>().join(",")
        )
    }),
    ("openai-chat unknown keys in one message", Format::OpenaiChat, |n| {
        let keys = (0..n).map(|at| format!(r#","unknown_{at}":{at}"#)).collect::<String>();
        format!(r#"[{{"role":"user","content":"go"{keys}}}]"#)
    }),
    ("openai-chat calls of one id in one message", Format::OpenaiChat, |n| {
        let call = r#"{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}"#;
        format!(
            r#"[{{"role":"user","content":"go"}},{{"role":"assistant","content":null,"tool_calls":[{}]}}]"#,
            vec![call; n].join(",")
        )
    }),
    ("openai-chat calls of one id, answered in the end", Format::OpenaiChat, |n| {
        let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
        let answer = r#"{"role":"tool","tool_call_id":"c","content":"x"}"#;
        format!(
            r#"[{{"role":"user","content":"go"}},{},{}]"#,
            vec![call; n / 2].join(","),
            vec![answer; n / 2].join(",")
        )
    }),
    ("openai-chat calls of one id, each answered", Format::OpenaiChat, |n| {
        let pair = concat!(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"c","content":"x"}"#
        );
        format!(r#"[{{"role":"user","content":"go"}},{}]"#, vec![pair; n / 2].join(","))
    }),
    ("openai-chat calls in one message, none answered", Format::OpenaiChat, |n| {
        let call = |at| {
            format!(r#"{{"id":"c{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
        };
        format!(
            r#"[{{"role":"user","content":"go"}},{{"role":"assistant","content":null,"tool_calls":[{}]}}]"#,
            (0..n).map(call).collect::<Vec<_>>().join(",")
        )
    }),
    ("openai-chat words of the user in a row", Format::OpenaiChat, |n| {
        format!(r#"[{}]"#, vec![r#"{"role":"user","content":"go"}"#; n].join(","))
    }),
    ("openai-chat deep nesting", Format::OpenaiChat, |n| {
        format!(r#"[{{"role":"user","content":"go","unknown":{}{}}}]"#, "[".repeat(n), "]".repeat(n))
    }),
    ("openai-chat system messages", Format::OpenaiChat, |n| {
        format!(r#"[{}]"#, vec![r#"{"role":"system","content":"Be brief."}"#; n].join(","))
    }),
    ("openai-chat empty parts", Format::OpenaiChat, |n| {
        format!(r#"[{{"role":"user","content":[{}]}}]"#, vec![r#"{"type":"text","text":""}"#; n].join(","))
    }),
    ("anthropic unknown keys in one message", Format::Anthropic, |n| {
        let keys = (0..n).map(|at| format!(r#","unknown_{at}":{at}"#)).collect::<String>();
        format!(r#"{{"system":"s","messages":[{{"role":"user","content":"go"{keys}}}]}}"#)
    }),
    ("anthropic blocks in one message", Format::Anthropic, |n| {
        format!(
            r#"{{"system":"s","messages":[{{"role":"user","content":[{}]}}]}}"#,
            vec![r#"{"type":"text","text":"x"}"#; n].join(",")
        )
    }),
    ("gemini calls without ids", Format::Gemini, |n| {
        let pair = r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}"#;
        format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"go"}}]}},{}]}}"#,
            vec![pair; n / 2].join(",")
        )
    }),
    ("gemini calls without ids in one content", Format::Gemini, |n| {
        let [call, answer] = [
            r#"{"functionCall":{"name":"f","args":{}}}"#,
            r#"{"functionResponse":{"name":"f","response":{"output":"x"}}}"#,
        ];
        format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"go"}}]}},{{"role":"model","parts":[{}]}},{{"role":"user","parts":[{}]}}]}}"#,
            vec![call; n / 2].join(","),
            vec![answer; n / 2].join(",")
        )
    }),
    ("chatgpt chain", Format::ChatGpt, |n| chatgpt(n, |at| at.checked_sub(1))),
    ("chatgpt star", Format::ChatGpt, |n| chatgpt(n, |at| at.checked_sub(1).map(|_| 0))),
    ("chatgpt comb", Format::ChatGpt, |n| chatgpt(n, comb)),
    ("chatgpt conversations", Format::ChatGpt, |n| format!("[{}]", vec![chatgpt(1, |_| None); n].join(","))),
    ("claude-ai chain", Format::ClaudeAi, |n| claude_ai(n, |at| at.checked_sub(1))),
    ("claude-ai comb", Format::ClaudeAi, |n| claude_ai(n, comb)),
    ("claude-ai calls in one message", Format::ClaudeAi, |n| {
        let block = |at: usize| {
            let id = at / 2;
            match at % 2 {
                0 => format!(r#"{{"type":"tool_use","id":"c{id}","name":"f","input":{{}}}}"#),
                _ => format!(r#"{{"type":"tool_result","tool_use_id":"c{id}","content":"x"}}"#),
            }
        };
        format!(
            r#"{{"chat_messages":[{{"sender":"assistant","content":[{}]}}]}}"#,
            (0..n).map(block).collect::<Vec<_>>().join(",")
        )
    }),
    ("sharegpt dialogues", Format::ShareGpt, |n| {
        format!(
            "[{}]",
            vec![r#"{"conversations":[{"from":"human","value":"go"},{"from":"gpt","value":"x"}]}"#; n]
                .join(",")
        )
    }),
    ("aider runs", Format::Aider, |n| {
        lines(n, |at| match at % 4 {
            0 => "# aider chat started at 2026".to_owned(),
            1 => format!("#### go {at}  "),
            2 => "> done  ".to_owned(),
            _ => "so be it\n".to_owned(),
        })
    }),
    ("aider lines of one message", Format::Aider, |n| lines(n, |at| format!("#### line {at}  "))),
    ("aider first lines", Format::Aider, |n| {
        format!("{}\n#### go  ", lines(n, |_| "# aider chat started at 2026".to_owned()))
    }),
    ("openai-responses items", Format::OpenaiResponses, |n| {
        let item = r#"{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"x"}"#;
        format!(r#"{{"input":[{{"role":"user","content":"go"}},{}]}}"#, vec![item; n / 2].join(","))
    }),
];
