//! The forms of a model's name for the look-up.

/// `name`, and its forms without vendor, region, date and version, in the order of the look-up.
pub(super) fn forms(name: &str) -> Vec<String> {
    let whole = name.trim().to_ascii_lowercase();
    let mut forms = vec![whole.clone()];
    let bare = without_place(whole.rsplit('/').next().unwrap_or(&whole));
    let mut rest = bare.split([':', '@']).next().unwrap_or(bare);
    loop {
        if !forms.iter().any(|form| form == rest) {
            forms.push(rest.to_owned());
        }
        match without_ending(rest) {
            Some(shorter) if !shorter.is_empty() => rest = shorter,
            _ => return forms,
        }
    }
}

/// The known names that are nearest to one of `forms`, nearest first.
pub(super) fn nearest<'a>(forms: &[String], known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|name| {
            let distances = forms.iter().map(|form| distance(form, name));
            let distance = distances.min().unwrap_or(usize::MAX);
            // A name with half of its letters wrong is another name.
            (distance.saturating_mul(2) <= name.len()).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(NEAREST_MAX).map(|(_, name)| name.to_owned()).collect()
}

fn distance(form: &str, name: &str) -> usize {
    // A text longer than any name is no typing error, and its distance would take long to compute.
    if form.len() > NAME_BYTES_MAX { usize::MAX } else { strsim::osa_distance(form, name) }
}

/// The name without the region and the vendor of Bedrock.
fn without_place(name: &str) -> &str {
    let without = |name: &'_ str, prefixes: &[&str]| {
        prefixes.iter().find_map(|prefix| name.strip_prefix(prefix).map(|rest| name.len() - rest.len()))
    };
    let region = without(name, REGIONS).unwrap_or(0);
    let name = name.get(region..).unwrap_or(name);
    let vendor = without(name, VENDORS).unwrap_or(0);
    name.get(vendor..).unwrap_or(name)
}

/// The name without one ending: a version, a date, or a word for an edition. `None` if it has no such ending.
fn without_ending(name: &str) -> Option<&str> {
    let words = ["-latest", "-preview", "-0"];
    if let Some(rest) = words.iter().find_map(|word| name.strip_suffix(word)) {
        return Some(rest);
    }
    let (rest, end) = name.rsplit_once('-')?;
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits(end, 8) || end.strip_prefix('v').is_some_and(|version| digits(version, 1)) {
        return Some(rest);
    }
    // -MM-DD, perhaps after -YYYY.
    let (rest, _) = rest.rsplit_once('-').filter(|(_, month)| digits(month, 2) && digits(end, 2))?;
    match rest.rsplit_once('-') {
        Some((rest, year)) if digits(year, 4) => Some(rest),
        _ => Some(rest),
    }
}

const REGIONS: &[&str] = &["us-gov.", "us.", "eu.", "apac.", "jp.", "au.", "ca.", "global."];
const VENDORS: &[&str] =
    &["anthropic.", "openai.", "meta.", "mistral.", "deepseek.", "qwen.", "google.", "amazon.", "cohere."];
/// Maximum number of names that an error suggests.
const NEAREST_MAX: usize = 3;
/// Maximum bytes of a model's name.
const NAME_BYTES_MAX: usize = 100;
