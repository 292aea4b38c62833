// Queries a session before its first turn and changes it between turns: `params.changes` has one list of calls for
// each turn after the first; a call is a method of the query with its arguments.
import { params, printMessages, printNote, openInput, options, sdk } from './harness.mjs'

const input = openInput()
const query = sdk.query({ prompt: input, options })
for (const method of ['supportedCommands', 'supportedModels', 'accountInfo', 'mcpServerStatus']) {
  printNote(method, await query[method]())
}
const [first, ...prompts] = params.prompts
input.push(first)
await printMessages(query, async message => {
  if (message.type !== 'result') return
  if (prompts.length === 0) return input.close()
  for (const [method, ...args] of params.changes.shift()) {
    const failed = error => printNote(method, `rejected: ${error.message}`)
    await query[method](...args).then(() => printNote(method, 'done'), failed)
  }
  input.push(prompts.shift())
})
