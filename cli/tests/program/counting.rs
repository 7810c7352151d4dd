//! Contents that cannot be counted directly: they are counted by another rule, or estimated and reported as estimated.

use serde_json::{Value, json};

use super::support::*;

/// Size and basis that `stats` reports of one message with these parts.
fn stats(content: &Value, args: &[&str]) -> (u64, String) {
    let folder = Folder::new();
    let messages = json!([{ "role": "user", "content": content }]);
    let file = folder.file("in.json", messages.to_string());
    let said = run(&[&["stats", text(&file), "--json"], args].concat()).json();
    (said["tokens"].as_u64().unwrap(), said["token_basis"].as_str().unwrap().to_owned())
}

fn image(data: &str) -> Value {
    let url = format!("data:image/png;base64,{data}");
    json!([{ "type": "image_url", "image_url": { "url": url } }])
}

/// The first bytes of a PNG of 640 x 480, of 4,294,967,295 squared and of no width.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA=";
const LYING: &str = "iVBORw0KGgoAAAANSUhEUv//////////CAYAAAA=";
const EMPTY: &str = "iVBORw0KGgoAAAANSUhEUgAAAAAAAAHgCAYAAAA=";

#[test]
fn an_image_counts_by_its_header_if_that_is_whole_and_never_by_its_length() {
    let text = stats(&json!(""), &[]).0;
    let tokens = |content: &Value| {
        let (tokens, basis) = stats(content, &[]);
        (tokens - text, basis)
    };
    let counted = |tokens| (tokens, "counted".to_owned());
    let estimated = |tokens| (tokens, "estimated".to_owned());
    // Two tiles of 170, and 85.
    assert_eq!(tokens(&image(PNG)), counted(425));
    assert_eq!(
        tokens(&image(&format!("{}{}", PNG.trim_end_matches('='), "A".repeat(300_000)))),
        counted(425)
    );
    // An image with a false header has the size of the largest image that the rule considers.
    assert_eq!(tokens(&image(LYING)), counted(765));
    for unknown in [&PNG[..20], EMPTY, "", "no base64!"] {
        assert_eq!(tokens(&image(unknown)), estimated(765), "{unknown}");
    }
    let remote = json!([{ "type": "image_url", "image_url": { "url": "https://example.org/a.png" } }]);
    assert_eq!(tokens(&remote), estimated(765));
}

#[test]
fn what_a_provider_publishes_as_approximate_is_an_estimate() {
    let gemini = ["--model", "gemini-3.1-pro"];
    let (with, basis) = stats(&image(PNG), &gemini);
    assert_eq!((with - stats(&json!(""), &gemini).0, basis.as_str()), (1_120, "estimated"));
}

#[test]
fn a_megabyte_of_blanks_is_counted() {
    let blanks = " ".repeat(1_048_576);
    let empty = stats(&json!(""), &[]).0;
    // One token for each 128 blanks.
    assert_eq!(stats(&json!(blanks), &[]), (empty + 8_192, "counted".to_owned()));
}
