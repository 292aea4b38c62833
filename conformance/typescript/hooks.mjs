// One prompt with hooks: `params.hooks` maps each event to a list of {matcher, answer}. Every hook call is noted.
import { params, printMessages, printNote, openInput, options, sdk } from './harness.mjs'

const hook = (event, answer) => async (input, id) => {
  printNote('hook', { event, input, id: id ?? null })
  return answer ?? {}
}
options.hooks = Object.fromEntries(Object.entries(params.hooks).map(([event, rows]) => [
  event, rows.map(({ matcher, answer }) => ({ matcher, hooks: [hook(event, answer)] })),
]))
const input = openInput(params.prompts[0])
await printMessages(sdk.query({ prompt: input, options }), message => {
  if (message.type === 'result') input.close()
})
