//! Tests of providers: who is asked, what is stored, what a failure does.

mod examples;
mod failures;
mod pipeline;
mod storing;
mod support;
