// Runs several queries with the same prompt; `params.each` has the options of each.
import { params, printMessages, options, sdk } from './harness.mjs'

async function* each() {
  for (const more of params.each) yield* sdk.query({ prompt: params.prompts[0], options: { ...options, ...more } })
}
await printMessages(each())
