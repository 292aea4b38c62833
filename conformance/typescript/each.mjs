// Runs several queries with the same prompt; `params.each` has the options of each.
import { asked, follow, options, sdk } from './stage.mjs'

async function* each() {
  for (const more of asked.each) yield* sdk.query({ prompt: asked.prompts[0], options: { ...options, ...more } })
}
await follow(each())
