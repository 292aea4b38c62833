// Sends each prompt after the result of the previous one; waits for `params.results` results.
import { params, printMessages, openInput, options, sdk } from './harness.mjs'

const [first, ...more] = params.prompts
const input = openInput(first)
let left = params.results ?? params.prompts.length
await printMessages(sdk.query({ prompt: input, options }), message => {
  if (message.type !== 'result') return
  if (more.length) input.push(more.shift())
  if (--left === 0) input.close()
})
