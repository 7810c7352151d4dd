//! An agent over any model of rig: its messages are made of Epitome's, and its answers are read back.
//!
//! The model is a value that rig erases, `DynModel<Completion>`: whichever provider and transport it was made with.
//!
//! `over_rig` answers itself; `over_rig MODEL` asks the service that `OPENAI_BASE_URL` names, with `OPENAI_API_KEY`.

use async_trait::async_trait;
use epitome::agent::{ChatClient, ChatRequest, ClientError};
use epitome::core::message::Role;
use epitome::core::{OpenAiTokens, Usage};
use epitome::message::{Message, Part, ToolCall};
use epitome::run::ModelResponse;
use epitome_clients::{service, talk};
use rig_core::DynModel;
use rig_core::completion::message::{AssistantMessage, CallId, ToolName};
use rig_core::completion::{AssistantContent, CompletionRequest, Message as RigMessage, ToolDefinition};
use rig_core::operation::Completion;
use rig_core::providers::openai::OpenAIConfig;

struct Rig(DynModel<Completion>);

#[async_trait]
impl ChatClient for Rig {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        let mut asked = CompletionRequest::new("");
        asked.chat_history = request.messages.iter().map(to_rig).collect::<Result<_, _>>()?;
        for tool in request.tools {
            let (name, description) = (ToolName::new(tool.name.as_str())?, tool.description.to_string());
            asked.tools.push(ToolDefinition { name, description, parameters: tool.parameters.clone() });
        }
        let answer = self.0.call(asked).await?;
        let message = Message::new(Role::Assistant, answer.choice.iter().filter_map(from_rig).collect());
        let mut tokens = OpenAiTokens::NONE;
        (tokens.input, tokens.output) = (answer.usage.input_tokens, answer.usage.output_tokens);
        (tokens.cached, tokens.total) = (answer.usage.cached_input_tokens, answer.usage.total_tokens);
        let response = ModelResponse::new(vec![message]).with_usage(Usage::openai(tokens));
        Ok(match answer.response_id() {
            Some(id) => response.with_response_id(id),
            None => response,
        })
    }
}

/// A message as rig has it. A part without a form there is an error: nothing is left out in silence.
fn to_rig(message: &Message) -> Result<RigMessage, ClientError> {
    let text = |parts: &[Part]| {
        let texts = parts.iter().map(|part| match part {
            Part::Text(text) => Ok(text.as_str()),
            _ => Err(ClientError::from("a part that is no text")),
        });
        Ok::<_, ClientError>(texts.collect::<Result<Vec<_>, _>>()?.join("\n\n"))
    };
    Ok(match (message.role(), message.parts()) {
        (Role::System | Role::Developer, parts) => RigMessage::system(text(parts)?),
        (Role::Tool, [Part::ToolResult(result)]) => {
            // The name is asked for when the message is sent on; results are known by their calls.
            let name = ToolName::new(message.name().unwrap_or("tool"))?;
            RigMessage::tool_result(CallId::from_wire(result.call_id.as_str()), name, text(&result.parts)?)
        }
        (Role::Assistant, parts) => {
            let content = parts.iter().map(|part| match part {
                Part::Text(text) => Ok(AssistantContent::text(text.as_str())),
                Part::ToolCall(call) => {
                    let arguments = serde_json::from_str(&call.arguments)?;
                    Ok(AssistantContent::tool_call(
                        call.id.as_str(),
                        ToolName::new(call.name.as_str())?,
                        arguments,
                    ))
                }
                _ => Err(ClientError::from("a part that is no text and no call")),
            });
            RigMessage::Assistant(AssistantMessage::new(content.collect::<Result<_, ClientError>>()?))
        }
        (_, parts) => RigMessage::user(text(parts)?),
    })
}

fn from_rig(content: &AssistantContent) -> Option<Part> {
    match content {
        AssistantContent::Text(text) => Some(Part::Text(text.text.as_str().into())),
        AssistantContent::ToolCall(call) => {
            let arguments = call.function.arguments_value().to_string();
            Some(Part::ToolCall(ToolCall::new(
                call.id.wire().into_owned(),
                call.function.name.as_str(),
                arguments,
            )))
        }
        _ => None,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClientError> {
    if let Some(model) = std::env::args().nth(1) {
        let config = OpenAIConfig::from_env()?;
        talk(Rig(config.client().chat(&model).erase()), &model).await?;
        return Ok(());
    }
    let config = OpenAIConfig::new("none").with_base_url(service().await?);
    let talk = talk(Rig(config.client().chat("m").erase()), "m").await?;
    assert_eq!(talk.messages.len(), 4, "a call, its result, and two answers");
    assert_eq!(talk.tokens, 60, "what the service reported last, of six messages");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_said_is_the_same_there_and_back() {
        let call = Part::ToolCall(ToolCall::new("c1", "weather", r#"{"city":"Oslo"}"#));
        let message = Message::new(Role::Assistant, vec![Part::Text("Let me look.".into()), call]);
        let RigMessage::Assistant(said) = to_rig(&message).unwrap() else { panic!("an answer of the model") };
        let parts: Vec<Part> = said.content.iter().filter_map(from_rig).collect();
        assert_eq!(parts, message.parts());
    }
}
