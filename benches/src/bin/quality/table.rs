//! Tables in Markdown.

use core::fmt::Write as _;

use serde_json::Value;

/// A row for each strategy, and columns for each budget.
pub(crate) fn needs(measured: &Value) -> String {
    let shares = measured["shares"].as_array().unwrap();
    let mut text = format!(
        "{}, {}, {} before the cuts by {}. The cells are needed identifiers and copied text that are still shown, \
         in percent, then the tokens that were really left; a number behind `over` or `illegal` counts the cuts of that kind. Price: of \
         {} requests to {}, compacted above {} tokens, in percent of their price without a compaction.\n\n",
        counted(&measured["conversations"], "conversation"),
        counted(&measured["cuts"], "cut"),
        counted(&measured["tokens_before"], "token"),
        measured["tokenizer"].as_str().unwrap(),
        measured["price"]["requests"],
        measured["price"]["model"].as_str().unwrap(),
        measured["price"]["trigger"],
    );
    text += "| row |";
    for share in shares {
        let _ = write!(text, " keep {} | price |", share["keep"].as_str().unwrap());
    }
    text += "\n|---|";
    text += &"---|---:|".repeat(shares.len());
    text.push('\n');
    for at in 0..shares[0]["rows"].as_array().unwrap().len() {
        let _ = write!(text, "| {} |", name(&shares[0]["rows"][at]));
        for share in shares {
            let row = &share["rows"][at];
            let figures = format!("{}, {}", figure(&row["identifiers"]), figure(&row["copied_text"]));
            let remarks: String = [("over", &row["missed"]), ("illegal", &row["illegal"])]
                .into_iter()
                .filter(|(_, count)| count.as_u64() > Some(0))
                .map(|(what, count)| format!(" {what} {count}"))
                .collect();
            let (left, price) = (figure(&row["tokens_left"]), figure(&row["price"]["percent"]));
            let _ = write!(text, " {figures} [{left}]{remarks} | {price} |");
        }
        text.push('\n');
    }
    let left_out: Vec<_> = shares
        .iter()
        .map(|share| format!("{} at {}", share["left_out"], share["keep"].as_str().unwrap()))
        .collect();
    let _ = writeln!(
        text,
        "\nCuts left out, where what is protected alone has more than the budget: {}.\n",
        left_out.join(", ")
    );
    text
}

/// A row for each strategy, and columns for each round.
pub(crate) fn rounds(measured: &Value, keep: &str) -> String {
    let degradation = &measured["degradation"];
    let share = &degradation["shares"][0];
    let rounds = degradation["rounds"].as_u64().unwrap();
    let mut text = format!(
        "{} compacted {rounds} times to the same goal, {keep} % of the tokens before the first time ({} too short, {} with more \
         protected). The cells are needed identifiers and copied text by round; *once* is the last place, where nothing was compacted before. \
         Written: the tokens of summaries and ledgers at the first and the last round, in percent of the goal.\n\n| row |",
        counted(&degradation["conversations"], "conversation"),
        degradation["too_short"],
        share["left_out"],
    );
    (1..=rounds).for_each(|round| text += &format!(" {round} |"));
    text += " once | written |\n|---|";
    text += &"---|".repeat(rounds as usize + 2);
    text.push('\n');
    for row in share["rows"].as_array().unwrap() {
        let _ = write!(text, "| {} |", name(row));
        let after = row["after"].as_array().unwrap();
        for round in after {
            let _ = write!(text, " {}, {} |", figure(&round["identifiers"]), figure(&round["copied_text"]));
        }
        let (first, last) = (&after[0], &after[after.len() - 1]);
        let once = (figure(&last["identifiers_once"]), figure(&last["copied_text_once"]));
        let _ = writeln!(
            text,
            " {}, {} | {} to {} |",
            once.0,
            once.1,
            figure(&first["written"]),
            figure(&last["written"])
        );
    }
    text.push('\n');
    text
}

fn name(row: &Value) -> String {
    let name = row["strategy"].as_str().unwrap().replace('|', ", then");
    if row["baseline"] == true { name } else { format!("`{name}`").replace(" , then ", "`, `") }
}

fn counted(number: &Value, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn figure(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |figure| format!("{figure:.0}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_has_a_row_for_each_strategy_and_says_who_is_over_or_illegal() {
        let row = |name: &str, baseline: bool, missed: u64, illegal: u64| {
            json!({"strategy": name, "baseline": baseline, "identifiers": 77.7, "copied_text": null, "tokens_left": 9.4,
                   "missed": missed, "illegal": illegal, "price": {"percent": 42.1}})
        };
        let rows = [row("a | b", false, 0, 2), row("(newest)", true, 3, 0)];
        let measured = json!({"conversations": 1, "cuts": 4, "tokens_before": 1000, "tokenizer": "o200k_base",
            "price": {"requests": 7, "model": "m", "trigger": 500},
            "shares": [{"keep": "10%", "left_out": 1, "rows": rows}]});
        let text = needs(&measured);
        for line in [
            "1 conversation, 4 cuts, 1000 tokens before the cuts by o200k_base.",
            "| row | keep 10% | price |\n|---|---|---:|",
            "\n| `a`, `b` | 78, - [9] illegal 2 | 42 |\n",
            "\n| (newest) | 78, - [9] over 3 | 42 |\n",
            "budget: 1 at 10%.",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
