// Interrupts the first turn once the file `begun` exists or the reply has started, then runs another turn.
import { watch } from 'node:fs'
import { params, printMessages, printNote, openInput, options, sdk } from './harness.mjs'

const input = openInput(params.prompts[0])
const query = sdk.query({ prompt: input, options })
let interrupted = false
const interrupt = async () => {
  if (interrupted) return
  interrupted = true
  await query.interrupt()
  printNote('interrupted')
}
watch(process.cwd(), (_, name) => { if (name === 'begun') interrupt() })
let results = 0
await printMessages(query, message => {
  if (message.type === 'stream_event' && message.event.type === 'content_block_delta') interrupt()
  if (message.type !== 'result') return
  if (++results === 1) input.push(params.prompts[1])
  else input.close()
})
