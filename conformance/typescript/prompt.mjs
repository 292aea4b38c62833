// One prompt through `unstable_v2_prompt` of SDK 0.2, without a session.
import { asked, follow, options, sdk } from './stage.mjs'

async function* one() {
  yield await sdk.unstable_v2_prompt(asked.prompts[0], options)
}
await follow(one())
