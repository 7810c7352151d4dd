//! The table itself, the lookup of names in it, and errors in rows.

use core::time::Duration;

use epitome_core::message::{MediaExtent, MediaKind, MediaView};
use epitome_core::{Amount, Basis, ClassEstimator, TokenCounter, Tokens};

use super::*;
use crate::tokens::UnknownCounter;

#[test]
fn every_row_is_read_and_holds_together() {
    let rows = row::parse(TABLE).unwrap();
    assert!(rows.len() >= 40);
    for model in &rows {
        assert!(model.source.starts_with("https://"), "{}", model.name);
        assert!(model.date.len() == 10 && model.date.starts_with("20"), "{}", model.name);
        assert!(model.input_max.is_none_or(|input| input <= model.window), "{}", model.name);
        assert!(model.output_max.is_none_or(|output| output <= model.window), "{}", model.name);
        assert_eq!(Models::builtin().find(&model.name).as_ref(), Ok(&model), "each name once");
        // A build may lack an encoding, but the table never misspells one.
        let known = ["estimate", "o200k_base", "cl100k_base", "o200k_harmony"];
        assert!(known.contains(&model.encoding.as_str()), "{}", model.name);
        let budget = model.budget().unwrap();
        assert!(budget.limit() <= model.input_max.unwrap_or(model.window));
        assert!(budget.reserve() <= model.output_max.unwrap_or(u64::MAX));
    }
    assert_eq!(Models::builtin().iter().count(), rows.len());
}

#[test]
fn names_are_found_without_vendor_region_date_and_version() {
    for (asked, name) in [
        ("gpt-4o", "gpt-4o"),
        (" GPT-4o ", "gpt-4o"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("openrouter/openai/gpt-4o-mini:free", "gpt-4o-mini"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("claude-sonnet-4-0", "claude-sonnet-4"),
        ("models/gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct"),
        ("mistral-large-2512", "mistral-large-2512"),
    ] {
        assert_eq!(Models::builtin().find(asked).map(|model| model.name.as_str()), Ok(name), "{asked}");
    }
}

#[test]
fn what_is_not_in_the_table_is_never_guessed() {
    for asked in
        ["", "gpt-4o-audio", "gpt-4", "claude", "-2024-08-06", "/", ":0", "us.", "gpt-4o-2024-08", "ｇｐｔ"]
    {
        let error = Models::builtin().find(asked).unwrap_err();
        assert_eq!(error.name, asked);
        assert!(error.nearest.len() <= 3);
        assert!(error.to_string().contains("no model is called"));
    }
    let nearest = |asked: &str| Models::builtin().find(asked).unwrap_err().nearest;
    assert_eq!(nearest("gpt4o").first().map(String::as_str), Some("gpt-4o"));
    assert_eq!(nearest("openai/gpt-4.1-mimi-2025-04-14").first().map(String::as_str), Some("gpt-4.1-mini"));
    assert_eq!(nearest("claude-sonet-4-5").first().map(String::as_str), Some("claude-sonnet-4-5"));
    assert!(nearest(&"gpt-4o".repeat(10_000)).is_empty());
    assert!(nearest("a model of our own").is_empty());
}

#[test]
fn own_rows_come_first_and_wrong_ones_are_refused_with_their_line() {
    let own = "# ours\n\ngpt-4o,openai-chat,,64000,,,none,,,\nhouse,qwen,estimate,32768,,1000,fixed:256,1/0.2/4/0,,";
    let models = Models::builtin().with_rows(own).unwrap();
    assert_eq!(models.find("gpt-4o").map(|model| model.window), Ok(64_000));
    let house = models.find("house").unwrap();
    assert_eq!((house.reserve(), house.framing().message), (1_000, 5));
    assert!(models.find("gpt-4.1").is_ok());
    let models = models.with(Model::new("House", 1_000));
    assert_eq!(models.find("house").map(|model| model.window), Ok(1_000));

    for (row, what) in [
        ("x", "1 fields"),
        (",qwen,,1,,,,,,", "name is empty"),
        ("x,klingon,,1,,,,,,", "no profile"),
        ("x,qwen,,,,,,,,", "window is empty"),
        ("x,qwen,,many,,,,,,", "expected a number"),
        ("x,qwen,,1000,0,,,,,", "expected a number"),
        ("x,qwen,,1000,,-1,,,,", "expected a number"),
        ("x,qwen,,1000,,,tiles:85,,,", "no rule for images"),
        ("x,qwen,,1000,,,tiles:a+b,,,", "no rule for images"),
        ("x,qwen,,1000,,,,1/0.1/5,,", "prices are"),
        ("x,qwen,,1000,,,,1/0.1/5/-1,,", "prices are"),
        ("x,qwen,,1000,,,,1/0.1/5/1/1/1,,", "prices are"),
        ("x,qwen,,1000,,,,1/0.1234/5/0,,", "prices are"),
        ("x,qwen,,1000,,,,1/./5/0,,", "prices are"),
        ("x,qwen,,1000,,,,9999999/1/5/0,,", "prices are"),
        ("x,qwen,,1,,,,,,", "no tokens are left for a request"),
    ] {
        let error = Models::builtin().with_rows(&format!("\n{row}")).unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.what.contains(what), "{row}: {error}");
    }
}

/// A compaction pays after the number of requests that follows from the prices. The figures are Anthropic's prices for
/// five minutes: 150,000 tokens, of which 10,000 stay unchanged.
#[test]
fn a_compaction_pays_after_the_requests_that_its_prices_say() {
    let prices = Models::builtin().find("claude-sonnet-4-5").unwrap().prices.unwrap();
    assert_eq!((prices.write, prices.read, prices.output), (1_250, 100, 5_000));
    assert_eq!((prices.cached_min, prices.lifetime), (1_024, Some(Duration::from_secs(300))));
    let pays = |after: u64, stable: u64, made: u64| prices.pays_after(150_000, after, stable, made);
    assert_eq!(pays(25_000, 10_000, 0), Some(2));
    // A request for a summary after the cached prefix reads the whole prefix from the cache.
    assert_eq!(pays(25_000, 10_000, 150_000 * 100 + 4_000 * 5_000), Some(5));
    assert_eq!(pays(25_000, 10_000, prices.summary(150_000, 4_000)), Some(15));
    assert_eq!(pays(145_000, 20_000, 0), Some(288));
    // A prefix that is too short for the cache is written again.
    assert_eq!(pays(25_000, 1_023, 0), pays(25_000, 0, 0));
    assert_eq!((pays(150_000, 150_000, 0), pays(160_000, 0, 0)), (None, None));
    assert_eq!(pays(25_000, 25_000, 0), Some(0));
    assert_eq!(prices.pays_after_when_cold(150_000, 25_000, 0), Some(0));
    assert!(prices.pays_after_when_cold(150_000, 149_000, prices.summary(2_000, 500)) > Some(1));
}

#[test]
fn budgets_follow_from_what_a_model_takes() {
    let figures = |name: &str| {
        let budget = Models::builtin().find(name).unwrap().budget().unwrap();
        (budget.window(), budget.reserve(), budget.limit())
    };
    assert_eq!(figures("gpt-4o"), (128_000, 8_192, 119_808));
    assert_eq!(figures("gpt-4-turbo"), (128_000, 4_096, 123_904));
    assert_eq!(figures("gpt-5"), (280_192, 8_192, 272_000));
    assert_eq!(figures("gpt-3.5-turbo"), (16_385, 2_048, 14_337));
}

#[test]
fn a_counter_is_named_after_what_it_counts() {
    let counter = |name: &str| Models::builtin().find(name).unwrap().counter();
    let claude = counter("claude-opus-4-7").unwrap();
    assert_eq!(claude.name(), format!("{}@claude-opus-4-7", ClassEstimator::NAME));
    let mut extent = MediaExtent::UNKNOWN;
    extent.pixels = Some((1_920, 1_080));
    let image = MediaView::new(MediaKind::Image, "image/png").with_extent(extent);
    assert_eq!(claude.media_rules().measure(image).tokens, Tokens(2_691));
    let plain =
        ModelCounter::over(Box::new(ClassEstimator::new()), Models::builtin().find("gpt-4o").unwrap());
    assert_eq!(plain.name(), ClassEstimator::NAME);
    // Other rules for the same model have another name, so that the counts of the former rules are repeated.
    let builtin = Models::builtin().find("gpt-4.1-mini").unwrap();
    let given = |image: &str| {
        let row = format!("gpt-4.1-mini,openai-chat,o200k_base,1047576,,,{image},,,");
        let models = Models::builtin().with_rows(&row).unwrap();
        let model = models.find("gpt-4.1-mini").unwrap();
        ModelCounter::over(Box::new(ClassEstimator::new()), model).name().to_owned()
    };
    let builtin = ModelCounter::over(Box::new(ClassEstimator::new()), builtin).name().to_owned();
    let (tiles, more) = (given("tiles:2833+5667"), given("tiles:2833+5668"));
    assert!(tiles.starts_with(&format!("{builtin}#")) && more.starts_with(&format!("{builtin}#")), "{tiles}");
    assert!(tiles != more && tiles == given("tiles:2833+5667"), "{tiles} {more}");
    let mut unknown = Model::new("x", 1_000);
    unknown.encoding = "abacus".to_owned();
    assert!(matches!(unknown.counter(), Err(UnknownCounter { name, .. }) if name == "abacus"));
}

#[test]
fn a_generation_has_rules_of_its_own_for_all_media() {
    let rules = |name: &str| Models::builtin().find(name).unwrap().media_rules();
    assert_eq!(rules("gemini-2.5-pro"), MediaRules::GEMINI);
    assert_eq!(rules("gemini-3.1-pro"), MediaRules::GEMINI_3);
    assert_eq!(rules("gpt-4o"), MediaRules::OPENAI);
}

/// Counts characters, exactly.
struct Chars;

impl TokenCounter for Chars {
    fn name(&self) -> &str {
        "chars"
    }

    fn basis(&self) -> Basis {
        Basis::Counted
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.chars().count() as u32)
    }
}

#[test]
fn tools_count_by_the_recipe() {
    let tools = r#"[{"type":"function","function":{"name":"ab","description":"cd.","parameters":{"type":"object",
        "properties":{"x":{"type":"string","description":"ef","enum":["u","vw"]}}}}}]"#;
    // 7 + "ab:cd" + 3 + 3 - 3 + (3 + "u") + (3 + "vw") + "x:string:ef" + 12
    let expected = 7 + 5 + 3 + 3 - 3 + 4 + 5 + 11 + 12;
    let amount = measure_tools(tools, &Chars).unwrap();
    assert_eq!((amount.tokens, amount.basis), (Tokens(expected), Basis::Counted));
    let flat = tools.replace(r#""function":{"name""#, r#""x":{},"name""#).replace("}}}}}]", "}}}}]");
    assert_eq!(measure_tools(&flat, &Chars).unwrap().tokens, Tokens(expected));
    let anthropic = r#"[{"name":"ab","input_schema":{"properties":{"x":{"properties":{"y":{}}}}}}]"#;
    assert_eq!(measure_tools(anthropic, &Chars).unwrap().basis, Basis::Estimated);
    // Schema parts that the recipe does not know are counted by the same rule, and make the sum an estimate.
    let with = |schema: &str| {
        let tools = format!(r#"[{{"name":"ab","input_schema":{{"properties":{{"x":{{{schema}}}}}}}}}]"#);
        let amount = measure_tools(&tools, &Chars).unwrap();
        (amount.tokens.0, amount.basis)
    };
    let (flat, _) = with(r#""type":"array","items":{"type":"string"}"#);
    let values = r#""type":"array","items":{"type":"string","enum":["u","vw"]}"#;
    assert_eq!(with(values), (flat - 3 + 4 + 5, Basis::Estimated));
    let (any, _) = with("");
    let one_of = r#""anyOf":[{"properties":{"y":{"description":"ef."}}},{"type":"null"}]"#;
    assert_eq!(with(one_of), (any + 3 + 3 + 5, Basis::Estimated));
    assert_eq!(with(r##""$ref":"#/$defs/A""##), (any, Basis::Estimated));
    let more = r#""additionalProperties":{"properties":{"y":{}}},"prefixItems":[{"enum":["u"]}]"#;
    assert_eq!(with(more), (any + 3 + 3 + 3 - 3 + 4, Basis::Estimated));
    let defined = r#"[{"name":"ab","input_schema":{"$defs":{"A":{"description":"ef"}}}}]"#;
    assert_eq!(
        measure_tools(defined, &Chars).unwrap(),
        Amount::new(Tokens(7 + 3 + 2 + 12), Basis::Estimated)
    );
    assert_eq!(measure_tools(r#"[{"type":"web_search"}]"#, &Chars).unwrap().tokens, Tokens::ZERO);
    for wrong in ["", "{}", "[", "null", "[1"] {
        assert!(measure_tools(wrong, &Chars).is_err(), "{wrong}");
    }
}
