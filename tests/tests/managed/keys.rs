//! The API key of a compaction service: no error contains it, and it is sent to another machine only with encryption.

use epitome::compactors::managed::anthropic::AnthropicCompaction;
use epitome::compactors::managed::openai::OpenAiCompaction;
use epitome::compactors::managed::{CompactionService, ServiceErrorKind, ServiceRequest};
use epitome::message::Message;

use crate::managed::openai::KEY;
use crate::managed::support::{all_of, block_on, server};

#[test]
fn a_wrong_key_is_not_told() {
    block_on(async {
        for key in ["sk-wrong-1234", "sk-wrong-1234\n"] {
            let at = format!("{}/openai/v1", server());
            let service = OpenAiCompaction::new(key.into()).unwrap().with_base_url(&at);
            let error = service.compact(&ServiceRequest::new(&[&Message::user("Hi")])).await.unwrap_err();
            assert_eq!(error.kind(), &ServiceErrorKind::Authentication);
            let said = format!("{}{service:?}{service:#?}", all_of(&error));
            assert!(!said.contains("1234"), "{said}");
        }
        // No server listens at this address, and the URL contains a secret too.
        let service =
            OpenAiCompaction::new(KEY.into()).unwrap().with_base_url("http://127.0.0.1:9/token-1234/v1");
        let error = service.compact(&ServiceRequest::new(&[&Message::user("Hi")])).await.unwrap_err();
        assert_eq!(error.kind(), &ServiceErrorKind::Unavailable);
        let said = format!("{}{service:?}", all_of(&error));
        assert!(!said.contains("1234") && !said.contains(KEY), "{said}");
    });
}

#[test]
fn it_goes_to_another_machine_only_with_encryption() {
    let said = [Message::user("Hi"), Message::assistant("Hello.")];
    let told: Vec<_> = said.iter().collect();
    let request = ServiceRequest::new(&told);
    let openai = |at: &str| OpenAiCompaction::new(KEY.into()).unwrap().with_base_url(at);
    let anthropic = |at: &str| AnthropicCompaction::new("m", KEY.into()).unwrap().with_base_url(at);
    block_on(async {
        for (at, why) in [
            ("http://gateway.invalid/v1", "without encryption"),
            ("gateway.invalid", "the address is http:// or https://"),
            ("https://user:SECRET@gateway.invalid", "the address is http:// or https://"),
        ] {
            for service in [&openai(at) as &dyn CompactionService, &anthropic(at)] {
                let error = service.compact(&request).await.unwrap_err();
                assert_eq!(error.kind(), &ServiceErrorKind::Invalid("address".into()));
                let said = all_of(&error);
                assert!(said.contains(why) && !said.contains(KEY) && !said.contains("SECRET"), "{said}");
            }
        }
        // With plain HTTP allowed, the request is sent, and there is no server.
        let (openai, anthropic) = (openai("http://gateway.invalid"), anthropic("http://gateway.invalid"));
        for service in [&openai.with_plain_http() as &dyn CompactionService, &anthropic.with_plain_http()] {
            let error = service.compact(&request).await.unwrap_err();
            assert_eq!(error.kind(), &ServiceErrorKind::Unavailable, "{error}");
        }
    });
}
