// Queries a session before its first turn and changes it between turns: `params.switches` has one list of calls for
// each turn after the first; a call is a method of the query with its arguments.
import { asked, follow, note, openInput, options, sdk } from './stage.mjs'

const input = openInput()
const query = sdk.query({ prompt: input, options })
for (const question of ['supportedCommands', 'supportedModels', 'accountInfo', 'mcpServerStatus']) {
  note(question, await query[question]())
}
const [first, ...prompts] = asked.prompts
input.say(first)
await follow(query, async message => {
  if (message.type !== 'result') return
  if (prompts.length === 0) return input.close()
  for (const [method, ...args] of asked.switches.shift()) {
    await query[method](...args).then(() => note(method, 'done'), error => note(method, `refused: ${error.message}`))
  }
  input.say(prompts.shift())
})
