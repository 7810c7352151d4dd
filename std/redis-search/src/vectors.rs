//! Vectors of what is stored and of what is searched.

use core::num::NonZeroUsize;
use std::sync::Arc;

use epitome_std::memory::Embedder;
use epitome_std::session::SessionError;

use crate::service::invalid;

/// The vectors of an index: their field, their length, and the model that makes them.
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
    /// A graph of neighbours: fast, and now and then a neighbour is missed.
    Hnsw,
    /// A list that is compared as a whole: exact.
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
    /// Vectors of this length in this field, made by `embedder`: in a graph of neighbours, by the angle between them. A search takes them and
    /// the words together, the vectors for seven tenths.
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

    /// Searches by vectors alone: the words do not count.
    #[must_use]
    pub const fn without_words(mut self) -> Self {
        self.with_words = false;
        self
    }

    /// The vector of a text, as Redis takes it: floats of four bytes, the lowest first.
    pub(crate) async fn embed(&self, text: &str) -> Result<Vec<u8>, SessionError> {
        let vector = self.embedder.embed(text).await?;
        self.check(&vector)?;
        Ok(vector.into_iter().flat_map(f32::to_le_bytes).collect())
    }

    /// Refuses a vector that has no distance from others: it would be stored, and spoil the order of searches.
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

    /// The words of the algorithm and the metric in the definition of an index and in its description.
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
