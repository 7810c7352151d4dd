//! Commands of a search.

use redis::{Cmd, cmd};

use crate::filter::Filter;
use crate::index::CONTENT;
use crate::vectors::VectorSearch;

/// Maximum number of input words in a query; the first words are taken. A long pasted text is not a question.
const WORDS_MAX: usize = 256;

/// Maximum length of a word in bytes. Longer words are left out.
const WORD_BYTES_MAX: usize = 128;

/// Fields of a memory that a search reads.
const RETURNED: [&str; 6] = [CONTENT, "role", "application_id", "agent_id", "user_id", "thread_id"];

/// Rank of a result: the vector similarity, a number between 0 and 1, counts for seven tenths, as in Agent Framework.
const HYBRID: &str = "0.3*@text_score + 0.7*@vector_similarity";

/// A search for words, for a vector, or for both.
pub(crate) struct Search<'a> {
    pub(crate) index: &'a str,
    pub(crate) filter: &'a Filter,
    pub(crate) words: &'a [String],
    pub(crate) vector: Option<(&'a VectorSearch, Vec<u8>)>,
    pub(crate) found_max: usize,
}

impl Search<'_> {
    /// The text of the query. The words cannot change the filter.
    pub(crate) fn query(&self) -> String {
        let (words, filter) = (self.words.join(" | "), self.filter.expression());
        let by_vector =
            |field: &str| format!("=>[KNN {} @{field} $vector AS vector_distance]", self.found_max);
        match (&self.vector, self.words.is_empty()) {
            (None, _) => format!("@{CONTENT}:({words}) {filter}"),
            (Some((vectors, _)), true) => format!("({filter}){}", by_vector(&vectors.field)),
            (Some((vectors, _)), false) => {
                format!("(~@{CONTENT}:({words}) {filter}){}", by_vector(&vectors.field))
            }
        }
    }

    pub(crate) fn command(&self) -> Cmd {
        let is_hybrid = self.vector.is_some() && !self.words.is_empty();
        let mut command = cmd(if is_hybrid { "FT.AGGREGATE" } else { "FT.SEARCH" });
        command.arg(self.index).arg(self.query());
        match (&self.vector, is_hybrid) {
            (None, _) => {
                command.arg("SCORER").arg("BM25STD").arg("WITHSCORES").arg("RETURN");
                command.arg(RETURNED.len()).arg(&RETURNED).arg("DIALECT").arg(2);
                command.arg("LIMIT").arg(0).arg(self.found_max);
            }
            (Some((_, vector)), false) => {
                command.arg("RETURN").arg(RETURNED.len()).arg(&RETURNED);
                command.arg("SORTBY").arg("vector_distance").arg("ASC").arg("DIALECT").arg(2);
                command.arg("LIMIT").arg(0).arg(self.found_max);
                command.arg("PARAMS").arg(2).arg("vector").arg(vector);
            }
            (Some((_, vector)), true) => {
                command.arg("SCORER").arg("BM25STD").arg("ADDSCORES");
                command.arg("LOAD").arg(RETURNED.len()).arg(&RETURNED).arg("DIALECT").arg(2);
                command.arg("APPLY").arg("(2 - @vector_distance)/2").arg("AS").arg("vector_similarity");
                command.arg("APPLY").arg("@__score").arg("AS").arg("text_score");
                command.arg("APPLY").arg(HYBRID).arg("AS").arg("hybrid_score");
                command.arg("SORTBY").arg(2).arg("@hybrid_score").arg("DESC").arg("MAX").arg(self.found_max);
                command.arg("PARAMS").arg(2).arg("vector").arg(vector);
            }
        }
        command
    }
}

/// Splits a text into words as the index does: at white space and ASCII punctuation, in lower case. So no part of a
/// text can act as query syntax. A word of underscores alone is left out.
pub(crate) fn words(text: &str) -> Vec<String> {
    let is_between = |letter: char| {
        letter.is_whitespace() || letter.is_control() || (letter.is_ascii_punctuation() && letter != '_')
    };
    let words = text.split(is_between).map(|word| word.replace(['“', '”'], "").to_lowercase());
    words
        .filter(|word| word.contains(|letter| letter != '_') && word.len() <= WORD_BYTES_MAX)
        .take(WORDS_MAX)
        .collect()
}
