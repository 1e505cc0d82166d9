"""The measured job types of backwave_django: an app, so that they are found like any others."""
