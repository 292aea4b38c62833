// Sets an option that is rejected; `params.feature` names it.
import { params, printMessages, options, sdk } from './harness.mjs'

const features = {
  'an unknown session': { resume: '0b5e6c1e-7d8b-4a52-9f3b-3f5f6f0a7a11' },
}
await printMessages(sdk.query({ prompt: params.prompts[0], options: { ...options, ...features[params.feature] } }))
