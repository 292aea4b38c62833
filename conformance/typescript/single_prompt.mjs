// Runs one prompt: a string, or with `params.as_iterable` streaming input that closes at once.
import { params, printMessages, openInput, options, sdk } from './harness.mjs'

const [text] = params.prompts
const input = openInput(text)
input.close()
await printMessages(sdk.query({ prompt: params.as_iterable ? input : text, options }))
