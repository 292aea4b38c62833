// One prompt with hooks: `params.hooks` maps each event to a list of {matcher, answer}. Every hook call is noted.
import { asked, follow, note, openInput, options, sdk } from './stage.mjs'

const hook = (event, answer) => async (input, id) => {
  note('hook', { event, input, id: id ?? null })
  return answer ?? {}
}
options.hooks = Object.fromEntries(Object.entries(asked.hooks).map(([event, rows]) => [
  event, rows.map(({ matcher, answer }) => ({ matcher, hooks: [hook(event, answer)] })),
]))
const input = openInput(asked.prompts[0])
await follow(sdk.query({ prompt: input, options }), message => {
  if (message.type === 'result') input.close()
})
