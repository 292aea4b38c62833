// Moves a running command to the background and stops it after the turn; notes the SDK's responses.
import { params, printMessages, printNote, openInput, options, sdk } from './harness.mjs'

const input = openInput(params.prompts[0])
const query = sdk.query({ prompt: input, options })
const calls = message => (message.type === 'assistant' ? message.message.content.filter(block => block.type === 'tool_use') : [])
let task
await printMessages(query, async message => {
  for (const call of calls(message)) {
    printNote('unknown call', await query.backgroundTasks('unknown'))
    // The call is reported before its command runs.
    while (!(await query.backgroundTasks(call.id)));
    printNote('backgrounded', await query.backgroundTasks())
  }
  if (message.subtype === 'task_started') task = message.task_id
  if (message.type === 'result') printNote('stopped', await query.stopTask(task))
  if (message.subtype === 'task_notification') input.close()
})
