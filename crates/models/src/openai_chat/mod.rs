//! The Chat Completions dialect, so that OpenAI, Kimi, DeepSeek, OpenRouter, Ollama, vLLM, llama.cpp and many others
//! can be asked.
//!
//! - `request`: our request in their words, pure
//! - `chunk`: one piece of an answer, read leniently; `stream`: pieces to events, pure
//! - `refusal`: what an error means, pure
//! - `client`: asking over HTTP

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "without a network nobody is asked"))]

#[cfg(feature = "http")]
mod client;

mod chunk;
mod error;
mod request;
mod stream;

#[cfg(feature = "http")]
pub use client::OpenAiChat;
