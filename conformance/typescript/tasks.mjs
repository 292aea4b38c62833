// Moves a running command to the background and stops it after the turn; notes the SDK's responses.
import { asked, follow, note, openInput, options, sdk } from './stage.mjs'

const input = openInput(asked.prompts[0])
const query = sdk.query({ prompt: input, options })
const calls = message => (message.type === 'assistant' ? message.message.content.filter(block => block.type === 'tool_use') : [])
let task
await follow(query, async message => {
  for (const call of calls(message)) {
    note('of another', await query.backgroundTasks('another'))
    // The call is reported before its command runs.
    while (!(await query.backgroundTasks(call.id)));
    note('let go', await query.backgroundTasks())
  }
  if (message.subtype === 'task_started') task = message.task_id
  if (message.type === 'result') note('stopped', await query.stopTask(task))
  if (message.subtype === 'task_notification') input.close()
})
