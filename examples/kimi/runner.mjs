// An agent that serves a chat: each line of the input is a message. A message that comes while the agent works goes
// into the running turn. The conversation goes on where it was when the program starts again in the same folder.
//
// npm install @moonshot-ai/kimi-agent-sdk zod
// node runner.mjs /path/to/whimbrel
//
// Models, keys and MCP servers are those of ~/.kimi (config.toml, mcp.json).

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { createExternalTool, createSession } from '@moonshot-ai/kimi-agent-sdk'
import { z } from 'zod'

const SESSION_FILE = '.chat-session'
const say = line => process.stdout.write(`${line}\n`)

// The agent can write to the chat before its turn ends.
const sendMessage = createExternalTool({
  name: 'send_message',
  description: 'Sends a message to the chat at once.',
  parameters: z.object({ text: z.string() }),
  handler: async ({ text }) => {
    say(`message: ${text}`)
    return { output: 'sent', message: '' }
  },
})

// Commands that only look are allowed; everything else is rejected, which ends the turn.
const isHarmless = command => /^(ls|cat|git (status|log))\b/.test(command) && !/[;&|><`$\n]/.test(command)

const session = createSession({
  workDir: process.cwd(),
  sessionId: existsSync(SESSION_FILE) ? readFileSync(SESSION_FILE, 'utf8') : undefined,
  executable: process.argv[2] ?? 'whimbrel',
  externalTools: [sendMessage],
})
writeFileSync(SESSION_FILE, session.sessionId)

async function runTurn(turn) {
  let text = ''
  for await (const event of turn) {
    switch (event.type) {
      case 'ContentPart':
        if (event.payload.type === 'text') text += event.payload.text
        break
      case 'ToolCall':
        say(`tool: ${event.payload.function.name}`)
        break
      case 'SteerInput':
        say(`added: ${event.payload.user_input}`)
        break
      case 'ApprovalRequest': {
        const [shown] = event.payload.display
        const allowed = shown?.type === 'shell' && isHarmless(shown.command)
        await turn.approve(event.payload.id, allowed ? 'approve' : 'reject')
        break
      }
      case 'error':
        say(`error: ${event.code}`)
        break
    }
  }
  const { status } = await turn.result
  say(`answer (${status}): ${text}`)
}

let running = null
for await (const message of createInterface({ input: process.stdin })) {
  if (running) {
    const isSteered = await running.steer(message).then(
      () => true,
      () => false, // The turn has just ended: the message begins the next one.
    )
    if (isSteered) {
      say(`steered: ${message}`)
      continue
    }
  }
  running = session.prompt(message)
  runTurn(running)
    .catch(error => say(`failed: ${error.message}`))
    .finally(() => (running = null))
}
while (running) await new Promise(resolve => setImmediate(resolve))
await session.close()
