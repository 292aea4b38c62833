// Sends each prompt after the result of the previous one; waits for `params.results` results.
import { asked, follow, openInput, options, sdk } from './stage.mjs'

const [first, ...more] = asked.prompts
const input = openInput(first)
let left = asked.results ?? asked.prompts.length
await follow(sdk.query({ prompt: input, options }), message => {
  if (message.type !== 'result') return
  if (more.length) input.say(more.shift())
  if (--left === 0) input.close()
})
