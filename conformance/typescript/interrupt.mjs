// Interrupts the first turn once the file `begun` exists or the reply has started, then runs another turn.
import { watch } from 'node:fs'
import { asked, follow, note, openInput, options, sdk } from './stage.mjs'

const input = openInput(asked.prompts[0])
const query = sdk.query({ prompt: input, options })
let interrupted = false
const interrupt = async () => {
  if (interrupted) return
  interrupted = true
  await query.interrupt()
  note('interrupted')
}
watch(process.cwd(), (_, name) => { if (name === 'begun') interrupt() })
let results = 0
await follow(query, message => {
  if (message.type === 'stream_event' && message.event.type === 'content_block_delta') interrupt()
  if (message.type !== 'result') return
  if (++results === 1) input.say(asked.prompts[1])
  else input.close()
})
