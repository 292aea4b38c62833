//! The Chat Completions dialect: OpenAI, Kimi, DeepSeek, OpenRouter, Ollama, vLLM, llama.cpp and many others.
//!
//! - `request`: translates a request, pure
//! - `chunk`: parses one chunk of a response leniently; `stream`: chunks to reply events, pure
//! - `error`: decodes errors, pure
//! - `client`: HTTP client

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "without a network nobody is asked"))]

#[cfg(feature = "http")]
mod client;

mod chunk;
mod error;
mod request;
mod stream;

#[cfg(feature = "http")]
pub use client::OpenAiChat;
