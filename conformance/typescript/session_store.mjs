// Runs two prompts in two processes with one store; deletes all local sessions in between.
import { rmSync } from 'node:fs'
import { params, printMessages, printNote, options, sdk } from './harness.mjs'

const store = new sdk.InMemorySessionStore()
const [first, second] = params.prompts
let session
for await (const message of sdk.query({ prompt: first, options: { ...options, sessionStore: store } })) {
  if (message.type !== 'result') continue
  process.stdout.write(JSON.stringify({ message }) + '\n')
  session = message.session_id
}
rmSync(`${process.env.HOME}/.claude`, { recursive: true })
const again = { ...options, model: params.second, sessionStore: store, resume: session }
await printMessages(sdk.query({ prompt: second, options: again }), async message => {
  if (message.type !== 'result') return
  const [key] = await store.listSessions(process.cwd().replace(/[^A-Za-z0-9]/g, '-'))
  printNote('stored', await store.load({ projectKey: process.cwd().replace(/[^A-Za-z0-9]/g, '-'), sessionId: key.sessionId }))
})
