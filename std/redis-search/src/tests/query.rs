//! The query language as the module reads it, and its meaning for a hash.

use std::collections::BTreeMap;

/// A hash as the server keeps it.
pub(super) type Hash = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    All(Vec<Self>),
    Any(Vec<Self>),
    /// Affects only the rank.
    Maybe(Box<Self>),
    Word(String),
    Text(String, Box<Self>),
    Tag(String, Vec<String>),
}

/// The nearest entries by vector, among the results of the rest of the query.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Nearest {
    pub(super) count: usize,
    pub(super) field: String,
    pub(super) parameter: String,
    pub(super) distance: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Term(String),
    Sign(char),
}

pub(super) fn parse(query: &str) -> Result<(Node, Option<Nearest>), String> {
    let (query, nearest) = match unescaped_arrow(query) {
        Some(at) => (&query[..at], Some(nearest(&query[at + 2..])?)),
        None => (query, None),
    };
    let mut tokens = tokens(query)?;
    tokens.reverse();
    let node = any(&mut tokens)?;
    match tokens.last() {
        None => Ok((node, nearest)),
        Some(token) => Err(format!("{token:?} is left")),
    }
}

/// An arrow in a text has a backslash before each of its signs.
fn unescaped_arrow(query: &str) -> Option<usize> {
    let at = query.rfind("=>")?;
    (!query[..at].ends_with('\\')).then_some(at)
}

/// `[KNN 10 @vector $parameter AS distance]`
fn nearest(text: &str) -> Result<Nearest, String> {
    let inner = text.strip_prefix("[KNN ").and_then(|text| text.strip_suffix(']'));
    let words: Vec<&str> = inner.ok_or("no KNN")?.split(' ').collect();
    let [count, field, parameter, "AS", distance] = words[..] else { return Err(format!("KNN {words:?}")) };
    Ok(Nearest {
        count: count.parse().map_err(|_| "no count")?,
        field: field.strip_prefix('@').ok_or("no field")?.to_owned(),
        parameter: parameter.strip_prefix('$').ok_or("no parameter")?.to_owned(),
        distance: distance.to_owned(),
    })
}

/// Terms consist of letters, digits, underscores, characters beyond ASCII, and any punctuation or blank after a
/// backslash.
fn tokens(query: &str) -> Result<Vec<Token>, String> {
    let (mut tokens, mut term, mut is_escaped) = (Vec::new(), String::new(), false);
    // A blank at the end ends the last term.
    let mut letters = query.chars().chain([' ']);
    while let Some(letter) = letters.next() {
        let is_sign = letter.is_ascii_punctuation() || letter.is_ascii_control() || letter == ' ';
        match letter {
            '\\' => {
                let escaped = letters.next().ok_or("nothing is escaped")?;
                if !escaped.is_ascii_punctuation() && !escaped.is_ascii_whitespace() {
                    return Err(format!("a backslash before {escaped:?}"));
                }
                term.push(escaped);
                is_escaped = true;
            }
            _ if letter == '_' || !is_sign => term.push(letter),
            _ => {
                // An underscore alone is no term.
                if !term.is_empty() && (term != "_" || is_escaped) {
                    tokens.push(Token::Term(term.clone()));
                }
                term.clear();
                is_escaped = false;
                // These signs have no meaning there.
                if !matches!(letter, '?' | '`' | ' ' | '\t' | '\n' | '\r') {
                    tokens.push(Token::Sign(letter));
                }
            }
        }
    }
    if term.is_empty() { Ok(tokens) } else { Err("a backslash at the end".to_owned()) }
}

fn any(tokens: &mut Vec<Token>) -> Result<Node, String> {
    let mut nodes = vec![all(tokens)?];
    while tokens.pop_if(|token| *token == Token::Sign('|')).is_some() {
        nodes.push(all(tokens)?);
    }
    Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Any(nodes) })
}

fn all(tokens: &mut Vec<Token>) -> Result<Node, String> {
    let mut nodes = vec![item(tokens)?];
    while !matches!(tokens.last(), None | Some(Token::Sign('|' | ')'))) {
        nodes.push(item(tokens)?);
    }
    Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::All(nodes) })
}

fn item(tokens: &mut Vec<Token>) -> Result<Node, String> {
    match tokens.pop() {
        Some(Token::Term(word)) => Ok(Node::Word(word)),
        Some(Token::Sign('~')) => Ok(Node::Maybe(Box::new(item(tokens)?))),
        Some(Token::Sign('(')) => {
            let inner = any(tokens)?;
            sign(tokens, ')')?;
            Ok(inner)
        }
        Some(Token::Sign('@')) => {
            let Some(Token::Term(field)) = tokens.pop() else { return Err("no field".to_owned()) };
            sign(tokens, ':')?;
            if tokens.pop_if(|token| *token == Token::Sign('{')).is_some() {
                return Ok(Node::Tag(field, tags(tokens)?));
            }
            Ok(Node::Text(field, Box::new(item(tokens)?)))
        }
        other => Err(format!("{other:?} begins nothing")),
    }
}

fn tags(tokens: &mut Vec<Token>) -> Result<Vec<String>, String> {
    let mut tags = Vec::new();
    loop {
        let Some(Token::Term(tag)) = tokens.pop() else { return Err("no tag".to_owned()) };
        tags.push(tag);
        match tokens.pop() {
            Some(Token::Sign('}')) => return Ok(tags),
            Some(Token::Sign('|')) => (),
            other => return Err(format!("{other:?} in a tag")),
        }
    }
}

fn sign(tokens: &mut Vec<Token>, sign: char) -> Result<(), String> {
    match tokens.pop() {
        Some(Token::Sign(found)) if found == sign => Ok(()),
        other => Err(format!("{other:?} for {sign}")),
    }
}

/// Number of occurrences of the query's words in a hash; `None` if the hash does not match. A part with only stop words
/// does not count.
pub(super) fn matches(node: &Node, field: Option<&str>, hash: &Hash) -> Option<usize> {
    match node {
        Node::All(nodes) => {
            nodes.iter().filter(|node| !is_stopped(node)).map(|node| matches(node, field, hash)).sum()
        }
        Node::Any(nodes) => nodes.iter().filter_map(|node| matches(node, field, hash)).reduce(|a, b| a + b),
        Node::Maybe(node) => Some(matches(node, field, hash).unwrap_or(0)),
        Node::Text(field, node) => matches(node, Some(field), hash),
        Node::Word(word) => {
            let text = hash.get(field.unwrap_or("content"))?;
            let count = indexed(&String::from_utf8_lossy(text))
                .iter()
                .filter(|it| **it == word.to_lowercase())
                .count();
            (count > 0).then_some(count)
        }
        Node::Tag(field, tags) => {
            let value = String::from_utf8_lossy(hash.get(field)?).to_lowercase();
            let mut values = value.split(',').map(str::trim);
            values.any(|value| tags.iter().any(|tag| tag.to_lowercase() == value)).then_some(0)
        }
    }
}

fn is_stopped(node: &Node) -> bool {
    match node {
        Node::All(nodes) | Node::Any(nodes) => nodes.iter().all(is_stopped),
        Node::Maybe(node) | Node::Text(_, node) => is_stopped(node),
        Node::Word(word) => STOP_WORDS.contains(&&*word.to_lowercase()),
        Node::Tag(..) => false,
    }
}

/// The words of a stored text: cut at blanks and at most punctuation.
fn indexed(text: &str) -> Vec<String> {
    let is_between = |letter: char| {
        letter.is_ascii_control()
            || letter == ' '
            || (letter.is_ascii_punctuation() && !"_$\\".contains(letter))
    };
    text.to_lowercase().split(is_between).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

pub(super) const STOP_WORDS: [&str; 33] = [
    "a", "is", "the", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "it",
    "no", "not", "of", "on", "or", "such", "that", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];
