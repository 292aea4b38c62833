// One prompt with a permission callback that returns `params.answer`, or throws it if it is a string.
import { asked, follow, note, openInput, options, sdk } from './stage.mjs'

options.canUseTool = async (tool, input, { signal, ...about }) => {
  note('question', { tool, input, about, signal: signal instanceof AbortSignal })
  if (typeof asked.answer === 'string') throw new Error(asked.answer)
  return asked.answer
}
const input = openInput(asked.prompts[0])
await follow(sdk.query({ prompt: input, options }), message => {
  if (message.type === 'result') input.close()
})
