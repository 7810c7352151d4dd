//! Vectors of stored memories and of queries.

use core::num::NonZeroUsize;
use std::sync::Arc;

use epitome_std::memory::Embedder;
use epitome_std::session::SessionError;

use crate::service::invalid;

/// Settings of the vectors of an index: the field, the number of dimensions, the algorithm, and the model that makes
/// the vectors.
///
/// ```
/// use std::sync::Arc;
/// use epitome_redis_search::{Embedder, VectorAlgorithm, VectorSearch};
///
/// # fn of(embedder: Arc<dyn Embedder>) -> Result<(), Box<dyn std::error::Error>> {
/// let vectors = VectorSearch::new("vector", 1536.try_into()?, embedder).with_algorithm(VectorAlgorithm::Flat);
/// # drop(vectors); Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct VectorSearch {
    pub(crate) field: Box<str>,
    pub(crate) dimensions: NonZeroUsize,
    pub(crate) algorithm: VectorAlgorithm,
    pub(crate) distance: VectorDistance,
    pub(crate) with_words: bool,
    embedder: Arc<dyn Embedder>,
}

/// The structure in which an index keeps vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorAlgorithm {
    /// A graph of neighbours: fast, but a search can miss a neighbour.
    Hnsw,
    /// A list that each search compares completely: exact.
    Flat,
}

/// The distance of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorDistance {
    /// By the angle between them.
    Cosine,
    /// By their inner product.
    InnerProduct,
    /// By the square of their Euclidean distance.
    Euclidean,
}

impl VectorSearch {
    /// Creates settings for vectors of `dimensions` numbers in `field`, which `embedder` makes. The defaults are the
    /// algorithm [`VectorAlgorithm::Hnsw`] and the distance [`VectorDistance::Cosine`]. A search uses vectors and words
    /// together, with seven tenths of the rank from the vectors.
    #[must_use]
    pub fn new(field: impl Into<Box<str>>, dimensions: NonZeroUsize, embedder: Arc<dyn Embedder>) -> Self {
        Self {
            field: field.into(),
            dimensions,
            algorithm: VectorAlgorithm::Hnsw,
            distance: VectorDistance::Cosine,
            with_words: true,
            embedder,
        }
    }

    /// Sets the structure in which the index keeps vectors.
    #[must_use]
    pub const fn with_algorithm(mut self, algorithm: VectorAlgorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Sets the distance of two vectors.
    #[must_use]
    pub const fn with_distance(mut self, distance: VectorDistance) -> Self {
        self.distance = distance;
        self
    }

    /// Searches by vectors alone, without words.
    #[must_use]
    pub const fn without_words(mut self) -> Self {
        self.with_words = false;
        self
    }

    /// Makes the vector of a text in the format of Redis: floats of four bytes, little endian.
    pub(crate) async fn embed(&self, text: &str) -> Result<Vec<u8>, SessionError> {
        let vector = self.embedder.embed(text).await?;
        self.check(&vector)?;
        Ok(vector.into_iter().flat_map(f32::to_le_bytes).collect())
    }

    /// Refuses a vector without a defined distance: such a vector would disturb the order of search results.
    fn check(&self, vector: &[f32]) -> Result<(), SessionError> {
        if vector.len() != self.dimensions.get() {
            return Err(invalid(&format!(
                "the embedder makes vectors of {} numbers, and the index has {}",
                vector.len(),
                self.dimensions
            )));
        }
        if !vector.iter().all(|number| number.is_finite()) {
            return Err(invalid(
                "the embedder made a vector with NaN or an infinite number, which has no distance; mend the embedder",
            ));
        }
        if self.distance == VectorDistance::Cosine && vector.iter().all(|number| *number == 0.0) {
            return Err(invalid(
                "the embedder made a vector of zeros alone, which has no angle; mend the embedder, or take another distance \
                 (with_distance)",
            ));
        }
        Ok(())
    }

    /// The names of the algorithm and the metric in the definition and the description of an index.
    pub(crate) const fn words(&self) -> (&'static str, &'static str) {
        let algorithm = match self.algorithm {
            VectorAlgorithm::Hnsw => "HNSW",
            VectorAlgorithm::Flat => "FLAT",
        };
        let distance = match self.distance {
            VectorDistance::Cosine => "COSINE",
            VectorDistance::InnerProduct => "IP",
            VectorDistance::Euclidean => "L2",
        };
        (algorithm, distance)
    }
}
