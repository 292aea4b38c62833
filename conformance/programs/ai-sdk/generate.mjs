// Runs one prompt with the AI SDK and its provider for this protocol; prints one JSON object with the outcome.
import { generateText, Output, streamText } from 'ai'
import { createClaudeCode, createCustomMcpServer } from 'ai-sdk-provider-claude-code'
import { z } from 'zod'

const { method, prompt, model: name, settings = {} } = JSON.parse(process.argv[2])
const provider = createClaudeCode({
  defaultSettings: { pathToClaudeCodeExecutable: process.env.ENGINE, cwd: process.cwd(), ...settings },
})
const model = provider(name)

const methods = {
  async text() {
    const { text, usage, finishReason, providerMetadata } = await generateText({ model, prompt })
    return { text, usage, finishReason, metadata: providerMetadata['claude-code'] }
  },

  async conversation() {
    const first = await generateText({ model, prompt })
    const { sessionId } = first.providerMetadata['claude-code']
    const second = await generateText({ model: provider(name, { resume: sessionId }), prompt: 'and now?' })
    return { texts: [first.text, second.text], sessions: [sessionId, second.providerMetadata['claude-code'].sessionId] }
  },

  async stream() {
    const parts = []
    for await (const part of streamText({ model, prompt }).fullStream) parts.push(part)
    return { parts }
  },

  // A tool of this process.
  async tool() {
    const add = {
      description: 'Adds two numbers',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      handler: async ({ a, b }) => ({ content: [{ type: 'text', text: `sum: ${a + b}` }] }),
    }
    const server = createCustomMcpServer({ name: 'calculator', tools: { add } })
    const withTool = provider(name, { mcpServers: { calculator: server }, allowedTools: ['mcp__calculator__add'] })
    const parts = []
    for await (const part of streamText({ model: withTool, prompt }).fullStream) parts.push(part)
    return { parts }
  },

  async permission() {
    const requests = []
    const canUseTool = async (tool, input) => {
      requests.push({ tool, input })
      return input.command.includes('allowed') ? { behavior: 'allow', updatedInput: input } : { behavior: 'deny', message: 'not here' }
    }
    const { text } = await generateText({ model: provider(name, { canUseTool, streamingInput: 'always' }), prompt })
    return { text, requests }
  },

  async object() {
    const schema = z.object({ name: z.string(), age: z.number() })
    const { output } = await generateText({ model, prompt, output: Output.object({ schema }) })
    return { output }
  },

  async objectStream() {
    const schema = z.object({ name: z.string(), age: z.number() })
    const result = streamText({ model, prompt, output: Output.object({ schema }) })
    const partial = []
    for await (const object of result.partialOutputStream) partial.push(object)
    return { partial, output: await result.output }
  },

  // Aborts once the first text has arrived.
  async abort() {
    const controller = new AbortController()
    const parts = []
    for await (const part of streamText({ model, prompt, abortSignal: controller.signal }).fullStream) {
      parts.push(part)
      if (part.type === 'text-delta') controller.abort()
    }
    return { parts }
  },

  async abortGenerate() {
    const controller = new AbortController()
    const watched = provider(name, { onSdkMessage: message => { if (message.type === 'system') controller.abort() } })
    return generateText({ model: watched, prompt, abortSignal: controller.signal }).then(
      ({ text }) => ({ text }),
      error => ({ error: error.message }),
    )
  },

  async failure() {
    return generateText({ model, prompt, maxRetries: 0 }).then(
      ({ text }) => ({ text }),
      error => ({ error: error.message }),
    )
  },
}

const outcome = await methods[method]()
process.stdout.write(JSON.stringify(outcome, (key, value) => (value instanceof Error ? String(value) : value)), () => process.exit())
