# Two stages: the first one installs, the second one runs as nobody in particular.
FROM python:3.12-slim AS build
WORKDIR /app
RUN python -m venv /venv
COPY requirements.lock .
RUN /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
# Collected and compressed once, at build; whitenoise serves the compressed files as they are.
ENV STATIC_ROOT=/app/staticfiles
RUN GPUPLATFORM_HOME=/tmp/home SECRET_KEY=build /venv/bin/python manage.py collectstatic --no-input \
 && /venv/bin/python -m whitenoise.compress --quiet /app/staticfiles \
 && /venv/bin/python -m compileall -q /app

FROM python:3.12-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin gpuplatform \
 && install -d -o gpuplatform -g gpuplatform -m 0700 /var/lib/gpuplatform
COPY --from=build /venv /venv
COPY --from=build /app /app
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    GPUPLATFORM_HOME=/var/lib/gpuplatform STATIC_ROOT=/app/staticfiles
WORKDIR /app
USER gpuplatform
EXPOSE 8000
CMD ["python", "-m", "uvicorn", "gpuplatform.asgi:application", "--host=0.0.0.0", "--port=8000", "--lifespan=off"]
