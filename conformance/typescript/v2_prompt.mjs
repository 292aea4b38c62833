// One prompt through `unstable_v2_prompt` of SDK 0.2, without a session.
import { params, printMessages, options, sdk } from './harness.mjs'

async function* one() {
  yield await sdk.unstable_v2_prompt(params.prompts[0], options)
}
await printMessages(one())
