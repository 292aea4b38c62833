// The official TypeScript SDK with Whimbrel as its engine: node one_shot.mjs path/to/whimbrel
// Needs `npm install @anthropic-ai/claude-agent-sdk` and an API key in the environment.
import { query } from '@anthropic-ai/claude-agent-sdk'

const options = { pathToClaudeCodeExecutable: process.argv[2], allowedTools: ['Read', 'Glob', 'Grep'] }
for await (const message of query({ prompt: 'What is in this folder?', options })) {
  if (message.type === 'result') console.log(message.result, `(${message.num_turns} turns, $${message.total_cost_usd})`)
}
