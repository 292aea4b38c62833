// One prompt and its result, without a session, as the SDK 0.2 has it.
import { asked, follow, options, sdk } from './stage.mjs'

async function* one() {
  yield await sdk.unstable_v2_prompt(asked.prompts[0], options)
}
await follow(one())
