//! The header has the declarations of the Rust code, no more and no fewer.
//!
//! cbindgen writes the declarations of the code; comments, macros and inline functions of the header are left out of
//! the comparison.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    reason = "a test, on a host"
)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use cbindgen::{Builder, Config, EnumConfig, ExportConfig, Language, RenameRule, Style};

/// The names of the types in C, behind `epitome_kernel_`.
const NAMES: [(&str, &str); 23] = [
    ("Budget", "budget"),
    ("Compacted", "compacted"),
    ("Entry", "entry"),
    ("Error", "error"),
    ("History", "history"),
    ("Layout", "layout"),
    ("Message", "message"),
    ("Outcome", "outcome"),
    ("Part", "part"),
    ("PartCode", "part_kind"),
    ("PassCode", "pass"),
    ("Placed", "placed"),
    ("PlanOutcome", "plan"),
    ("PlanResult", "plan_result"),
    ("RetentionCode", "retention"),
    ("RoleCode", "role"),
    ("Sink", "sink"),
    ("Span", "span"),
    ("Stage", "stage"),
    ("Status", "status"),
    ("StrategyCode", "strategy"),
    ("Text", "text"),
    ("ToolCall", "tool_call"),
];

#[test]
fn the_header_declares_what_the_code_exports() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(folder.join("include/epitome_kernel.h")).unwrap();
    let (checked_in, generated) = (declarations(&header), declarations(&generate(&folder)));
    let missing: Vec<_> = generated.difference(&checked_in).collect();
    let stale: Vec<_> = checked_in.difference(&generated).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "not in the header: {missing:#?}\nonly there: {stale:#?}"
    );
    assert!(generated.len() > 60, "{generated:#?}");
}

/// The version, the limits and the least memory of the header are those of the code.
#[test]
fn the_figures_of_the_header_are_those_of_the_code() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    let header = read("include/epitome_kernel.h");
    let code = [read("src/tables.rs"), read("src/stages.rs")].concat().replace('_', "");
    for (macro_name, constant) in [
        ("VERSION", "VERSION: u32 = "),
        ("STAGES_MAX", "STAGESMAX: usize = "),
        ("MESSAGES", "(\"EPITOMEKERNELMESSAGES\"), "),
        ("ARENA_BYTES", "(\"EPITOMEKERNELARENABYTES\"), "),
        ("RESULTS", "(\"EPITOMEKERNELRESULTS\"), "),
    ] {
        let value = number_after(&header, &format!("#define EPITOME_KERNEL_{macro_name} "));
        assert_eq!(value, number_after(&code, constant), "{macro_name}");
    }
    let formula = format!(
        "({} + EPITOME_KERNEL_MESSAGES * {} + EPITOME_KERNEL_RESULTS * {} + EPITOME_KERNEL_ARENA_BYTES + 7)",
        number_after(&code, "FIXEDBYTES: usize = "),
        number_after(&code, "MESSAGEBYTES: usize = "),
        number_after(&code, "RESULTBYTES: usize = "),
    );
    assert!(header.contains(&formula), "{formula}");
}

fn number_after(text: &str, prefix: &str) -> u32 {
    let at = text.find(prefix).unwrap_or_else(|| panic!("no {prefix}")) + prefix.len();
    let digits: String = text[at..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// A header as cbindgen makes it.
fn generate(folder: &std::path::Path) -> String {
    let rename = NAMES.iter().map(|(rust, c)| (rust.to_string(), format!("epitome_kernel_{c}"))).collect();
    let enumeration =
        EnumConfig { rename_variants: RenameRule::QualifiedScreamingSnakeCase, ..EnumConfig::default() };
    // Enumerations whose numbers are passed as plain integers.
    let include = NAMES.iter().map(|(rust, _)| rust.to_string()).collect();
    let config = Config {
        language: Language::C,
        style: Style::Both,
        usize_is_size_t: true,
        documentation: false,
        enumeration,
        export: ExportConfig { rename, include, ..ExportConfig::default() },
        ..Config::default()
    };
    let mut builder = Builder::new().with_config(config);
    let mut files: Vec<_> =
        std::fs::read_dir(folder.join("src")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        builder = builder.with_src(file);
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

/// The declarations of a header, one an entry and spelled alike: functions, structures, types, and values of enumerations.
fn declarations(header: &str) -> BTreeSet<String> {
    let mut code = without_comments(header);
    code = code.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join(" ");
    code = code.replace("extern \"C\" {", " ").replace("(void)", "()");
    let mut found = BTreeSet::new();
    let (mut depth, mut current) = (0, String::new());
    for c in code.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        current.push(c);
        let ends_inline = depth == 0 && c == '}' && current.trim_start().starts_with("static inline");
        if ends_inline {
            current.clear();
        } else if depth == 0 && c == ';' {
            add(&std::mem::take(&mut current), &mut found);
        }
        depth = depth.max(0);
    }
    found
}

fn add(declaration: &str, found: &mut BTreeSet<String>) {
    let spelled = spell(declaration.trim().trim_start_matches('}'));
    if spelled.starts_with("enum") {
        let (_, values) = spelled.split_once('{').unwrap();
        let values = values.split('}').next().unwrap();
        found.extend(values.split(',').filter(|value| !value.is_empty()).map(str::to_string));
    } else if let Some(alias) =
        spelled.strip_prefix("typedef int32_t epitome_kernel_").filter(|_| !spelled.contains('('))
    {
        // Enumerations that are only passed as numbers need no name of their own.
        if alias == "error;" {
            found.insert(spelled);
        }
    } else if !spelled.is_empty() && !spelled.starts_with("typedef enum") {
        found.insert(spelled);
    }
}

/// Single spaces, and only where two words meet.
fn spell(declaration: &str) -> String {
    let mut spelled = String::new();
    for word in declaration.split_whitespace() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if spelled.ends_with(is_word) && word.starts_with(is_word) {
            spelled.push(' ');
        }
        spelled.push_str(word);
    }
    // `struct` is needed at the definition of a type only, where both have it.
    match spelled.strip_prefix("typedef struct ") {
        Some(rest) => format!("typedef struct {}", rest.replace("struct ", "")),
        None => spelled.replace("struct ", ""),
    }
}

fn without_comments(code: &str) -> String {
    let mut rest = code;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        kept.push(' ');
        rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
    kept.push_str(rest);
    kept.replace("\\\n", " ")
}
