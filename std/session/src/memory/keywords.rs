//! Search by keywords.

use async_trait::async_trait;

use super::{Retrieved, Retriever};
use crate::search::SearchIndex;
use crate::session::SessionError;

/// Finds texts by their words. Use it for a small number of texts, in place of a search service.
///
/// ```
/// use epitome_std::memory::{KeywordRetriever, Retriever};
///
/// # futures::executor::block_on(async {
/// let retriever = KeywordRetriever::new(["Rust has no garbage collector.", "Bread needs flour and time."]);
/// let found = retriever.retrieve("Does rust collect garbage?", 5).await?;
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].text, "Rust has no garbage collector.");
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct KeywordRetriever {
    texts: Vec<String>,
    index: SearchIndex,
}

impl KeywordRetriever {
    /// A retriever over these texts.
    #[must_use]
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        let mut index = SearchIndex::new();
        for text in &texts {
            index.add(text);
        }
        Self { texts, index }
    }
}

#[async_trait]
impl Retriever for KeywordRetriever {
    async fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Retrieved>, SessionError> {
        let found = self.index.nearest(query, limit, |_| true);
        Ok(found
            .into_iter()
            .filter_map(|at| self.texts.get(at))
            .map(|text| Retrieved::new(text.as_str()))
            .collect())
    }
}
