//! Tests of providers: the calls, the stored messages, and the effects of a failure.

mod examples;
mod failures;
mod pipeline;
mod storing;
mod support;
