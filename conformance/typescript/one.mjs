// Runs one prompt: a string, or with `params.as_iterable` streaming input that closes at once.
import { asked, follow, openInput, options, sdk } from './stage.mjs'

const [text] = asked.prompts
const input = openInput(text)
input.close()
await follow(sdk.query({ prompt: asked.as_iterable ? input : text, options }))
