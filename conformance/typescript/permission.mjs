// One prompt with a permission callback that returns `params.answer`, or throws it if it is a string.
import { params, printMessages, printNote, openInput, options, sdk } from './harness.mjs'

options.canUseTool = async (tool, input, { signal, ...context }) => {
  printNote('request', { tool, input, context, signal: signal instanceof AbortSignal })
  if (typeof params.answer === 'string') throw new Error(params.answer)
  return params.answer
}
const input = openInput(params.prompts[0])
await printMessages(sdk.query({ prompt: input, options }), message => {
  if (message.type === 'result') input.close()
})
